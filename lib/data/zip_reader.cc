#include <algorithm>
#include <array>
#include <set>

#include "data/bytes.h"
#include "data/deflate.h"
#include "data/file_kind.h"
#include "data/zip.h"

namespace halfstep::data {
namespace {

constexpr std::uint32_t k_end_signature = 0x06054b50;
constexpr std::uint32_t k_end64_locator_signature = 0x07064b50;
constexpr std::uint32_t k_end64_signature = 0x06064b50;
constexpr std::uint32_t k_entry_signature = 0x02014b50;
constexpr std::uint32_t k_local_signature = 0x04034b50;
constexpr std::size_t k_end_bytes = 22;
constexpr std::size_t k_end64_locator_bytes = 20;
constexpr std::size_t k_end64_bytes = 56;
constexpr std::size_t k_entry_bytes = 46;
constexpr std::size_t k_local_bytes = 30;

/// Reads the 64-bit values of an entry's extra field into the variables that are marked as
/// overflowed.
bool read_zip64_extra(std::span<const std::byte> extra,
                      std::initializer_list<std::uint64_t*> values) {
  while (extra.size() >= 4) {
    const auto id = load_le<std::uint16_t>(extra.data());
    const auto size = load_le<std::uint16_t>(extra.data() + 2);
    if (size > extra.size() - 4) return false;
    if (id == 1) {
      std::span<const std::byte> field = extra.subspan(4, size);
      for (std::uint64_t* value : values) {
        if (*value != k_in_zip64) continue;
        if (field.size() < 8) return false;
        *value = load_le<std::uint64_t>(field.data());
        field = field.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + size);
  }
  return std::ranges::none_of(values, [](const std::uint64_t* v) { return *v == k_in_zip64; });
}

}  // namespace

struct ZipReader::Directory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t size = file_.size();
  const std::vector<std::byte> start = file_.start(k_kind_bytes);
  const bool zip = start.size() >= 4 && load_le<std::uint32_t>(start.data()) == k_local_signature;
  if (!zip && !file_kind(start).name.empty()) {
    throw wrong_file_kind(path(), "an NPZ file (a ZIP archive)", start);
  }
  if (size < k_end_bytes) throw file_error(path(), "is not a ZIP archive: it has {} bytes", size);
  std::vector<std::byte> tail(std::min<std::uint64_t>(size, k_end_bytes + 0xFFFF));
  file_.read(size - tail.size(), tail);
  std::size_t at = tail.size() - k_end_bytes + 1;
  const std::byte* end = nullptr;
  while (at-- > 0 && end == nullptr) {
    const std::byte* here = tail.data() + at;
    // The comment must reach to the end of the file, so that bytes in a comment cannot pass for the
    // record.
    if (load_le<std::uint32_t>(here) == k_end_signature &&
        load_le<std::uint16_t>(here + 20) == tail.size() - at - k_end_bytes) {
      end = here;
    }
  }
  if (end == nullptr) {
    throw file_error(path(), "is not a whole ZIP archive: it has no directory at its end");
  }
  const std::uint64_t end_offset =
      size - tail.size() + static_cast<std::uint64_t>(end - tail.data());
  Directory directory{.offset = load_le<std::uint32_t>(end + 16),
                      .bytes = load_le<std::uint32_t>(end + 12),
                      .entries = load_le<std::uint16_t>(end + 10)};
  std::uint64_t limit = end_offset;
  std::uint32_t disks = load_le<std::uint16_t>(end + 4) | load_le<std::uint16_t>(end + 6);
  if (end_offset >= k_end64_locator_bytes) {
    std::array<std::byte, k_end64_locator_bytes> locator{};
    file_.read(end_offset - locator.size(), locator);
    if (load_le<std::uint32_t>(locator.data()) == k_end64_locator_signature) {
      const auto at64 = load_le<std::uint64_t>(locator.data() + 8);
      std::array<std::byte, k_end64_bytes> end64{};
      if (at64 > end_offset || end_offset - at64 < end64.size() + locator.size()) {
        throw file_error(path(), "has a damaged ZIP directory");
      }
      file_.read(at64, end64);
      if (load_le<std::uint32_t>(end64.data()) != k_end64_signature) {
        throw file_error(path(), "has a damaged ZIP directory");
      }
      directory = {.offset = load_le<std::uint64_t>(end64.data() + 48),
                   .bytes = load_le<std::uint64_t>(end64.data() + 40),
                   .entries = load_le<std::uint64_t>(end64.data() + 32)};
      disks = load_le<std::uint32_t>(end64.data() + 16) | load_le<std::uint32_t>(end64.data() + 20);
      limit = at64;
    }
  }
  if (disks != 0) throw file_error(path(), "is one part of a ZIP archive in several parts");
  if (directory.offset > limit || directory.bytes > limit - directory.offset) {
    throw file_error(path(), "has a damaged ZIP directory");
  }
  return directory;
}

ZipReader::ZipReader(const std::string& path) : file_(path) {
  const Directory directory = find_directory();
  directory_offset_ = directory.offset;
  std::vector<std::byte> bytes(directory.bytes);
  file_.read(directory.offset, bytes);
  std::span<const std::byte> rest(bytes);
  std::set<std::string_view> names;
  // Reserved up front: `names` holds views into the entries.
  entries_.reserve(std::min<std::uint64_t>(directory.entries, bytes.size() / k_entry_bytes));
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (rest.size() < k_entry_bytes || load_le<std::uint32_t>(rest.data()) != k_entry_signature) {
      throw file_error(path, "has a damaged ZIP directory (entry {})", i);
    }
    const std::byte* at = rest.data();
    const std::size_t name_bytes = load_le<std::uint16_t>(at + 28);
    const std::size_t extra_bytes = load_le<std::uint16_t>(at + 30);
    const std::size_t all_bytes =
        k_entry_bytes + name_bytes + extra_bytes + load_le<std::uint16_t>(at + 32);
    if (all_bytes > rest.size()) {
      throw file_error(path, "has a damaged ZIP directory (entry {})", i);
    }
    ZipEntry entry{.name = {reinterpret_cast<const char*>(at + k_entry_bytes), name_bytes},
                   .size = load_le<std::uint32_t>(at + 24),
                   .stored_size = load_le<std::uint32_t>(at + 20),
                   .header_offset = load_le<std::uint32_t>(at + 42),
                   .crc = load_le<std::uint32_t>(at + 16)};
    const auto method = load_le<std::uint16_t>(at + 10);
    entry.deflated = method == 8;
    if ((load_le<std::uint16_t>(at + 8) & 1U) != 0) {
      throw file_error(path, "entry '{}' is encrypted", entry.name);
    }
    if (method != 0 && method != 8) {
      throw file_error(path,
                       "entry '{}' is compressed by method {}; only deflate can be read",
                       entry.name,
                       method);
    }
    if (!read_zip64_extra(rest.subspan(k_entry_bytes + name_bytes, extra_bytes),
                          {&entry.size, &entry.stored_size, &entry.header_offset})) {
      throw file_error(path, "has a damaged ZIP directory (entry '{}')", entry.name);
    }
    entries_.push_back(std::move(entry));
    if (!names.insert(entries_.back().name).second) {
      throw file_error(path, "has entry '{}' twice", entries_.back().name);
    }
    rest = rest.subspan(all_bytes);
  }
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry) const {
  std::array<std::byte, k_local_bytes> local{};
  const std::uint64_t limit = directory_offset_;
  const auto damaged = [&] { return file_error(path(), "entry '{}' is damaged", entry.name); };
  if (entry.header_offset > limit || limit - entry.header_offset < local.size()) throw damaged();
  file_.read(entry.header_offset, local);
  if (load_le<std::uint32_t>(local.data()) != k_local_signature) throw damaged();
  const std::size_t name_bytes = load_le<std::uint16_t>(local.data() + 26);
  const std::uint64_t start =
      entry.header_offset + local.size() + name_bytes + load_le<std::uint16_t>(local.data() + 28);
  if (start > limit || entry.stored_size > limit - start) throw damaged();
  std::string local_name(name_bytes, '\0');
  file_.read(entry.header_offset + local.size(), std::as_writable_bytes(std::span(local_name)));
  if (local_name != entry.name) throw damaged();
  std::vector<std::byte> content(entry.stored_size);
  file_.read(start, content);
  const std::string what = fmt::format("{}: entry '{}'", path(), entry.name);
  const bool possible = entry.deflated ? may_hold(content, Wrapper::none, what, entry.size)
                                       : entry.size == entry.stored_size;
  if (!possible) {
    throw file_error(path(),
                     "entry '{}' says it has {} bytes, which {} stored bytes cannot hold",
                     entry.name,
                     entry.size,
                     entry.stored_size);
  }

  if (entry.deflated) {
    const std::vector<std::byte> stored = std::move(content);
    content = std::vector<std::byte>(entry.size);
    Inflater inflater(stored, Wrapper::none, what);
    std::byte extra{};
    const std::size_t got = inflater.read(content);
    if (got < content.size() || inflater.read({&extra, 1}) > 0) {
      throw file_error(
          path(), "entry '{}' does not have the {} bytes it says", entry.name, entry.size);
    }
  }
  if (crc_of(content) != entry.crc) {
    throw file_error(path(), "entry '{}' fails its CRC-32 check", entry.name);
  }
  return content;
}

}  // namespace halfstep::data
