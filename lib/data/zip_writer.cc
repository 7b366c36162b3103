#include <string_view>

#include "data/bytes.h"
#include "data/deflate.h"
#include "data/zip.h"

namespace halfstep::data {
namespace {

// 1980-01-01, so that equal content gives equal files.
constexpr std::uint16_t k_date = 1 << 5 | 1;
constexpr std::uint16_t k_version = 20;
constexpr std::uint16_t k_version_zip64 = 45;

/// A record assembled field by field, little-endian.
class Record {
 public:
  template <class T>
  Record& add(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Record& add(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  /// The fields that the header of an entry and its row in the directory share.
  Record& add(const ZipEntry& entry, bool zip64, std::uint16_t zip64_bytes) {
    const auto size = zip64 ? k_in_zip64 : static_cast<std::uint32_t>(entry.size);
    return add(zip64 ? k_version_zip64 : k_version)
        .add(std::uint16_t{0})  // flags
        .add(std::uint16_t{0})  // stored
        .add(std::uint16_t{0})  // time
        .add(k_date)
        .add(entry.crc)
        .add(size)
        .add(size)
        .add(static_cast<std::uint16_t>(entry.name.size()))
        .add(zip64 ? zip64_bytes : std::uint16_t{0});
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

ZipWriter::ZipWriter(const std::string& path, std::uint64_t zip64_from)
    : file_(path), zip64_from_(zip64_from) {}

void ZipWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name,
                    std::initializer_list<std::span<const std::byte>> parts) {
  require(name.size() <= 0xFFFF, "ZIP entry name of {} bytes", name.size());
  ZipEntry entry{.name = name, .header_offset = offset_};
  for (const std::span<const std::byte> part : parts) {
    entry.crc = crc_of(part, entry.crc);
    entry.size += part.size();
  }
  entry.stored_size = entry.size;
  const bool zip64 = entry.size >= zip64_from_;
  Record local;
  local.add(std::uint32_t{0x04034b50}).add(entry, zip64, 20).add(std::string_view(name));
  if (zip64) local.add(std::uint16_t{1}).add(std::uint16_t{16}).add(entry.size).add(entry.size);
  write(local.bytes());
  for (const std::span<const std::byte> part : parts) write(part);
  entries_.push_back(std::move(entry));
}

void ZipWriter::commit() {
  const std::uint64_t start = offset_;
  for (const ZipEntry& entry : entries_) {
    const bool zip64 = entry.size >= zip64_from_ || entry.header_offset >= zip64_from_;
    Record record;
    record.add(std::uint32_t{0x02014b50})
        .add(zip64 ? k_version_zip64 : k_version)
        .add(entry, zip64, 28)
        .add(std::uint16_t{0})  // comment
        .add(std::uint16_t{0})  // disk
        .add(std::uint16_t{0})  // internal attributes
        .add(std::uint32_t{0})  // external attributes
        .add(zip64 ? k_in_zip64 : static_cast<std::uint32_t>(entry.header_offset))
        .add(std::string_view(entry.name));
    if (zip64) {
      record.add(std::uint16_t{1})
          .add(std::uint16_t{24})
          .add(entry.size)
          .add(entry.size)
          .add(entry.header_offset);
    }
    write(record.bytes());
  }
  const std::uint64_t end = offset_;
  const std::uint64_t count = entries_.size();
  const bool zip64 = end >= zip64_from_ || count >= 0xFFFF;
  Record tail;
  if (zip64) {
    tail.add(std::uint32_t{0x06064b50})
        .add(std::uint64_t{44})  // of the rest of this record
        .add(k_version_zip64)
        .add(k_version_zip64)
        .add(std::uint32_t{0})  // this disk
        .add(std::uint32_t{0})  // directory's disk
        .add(count)
        .add(count)
        .add(end - start)
        .add(start);
    tail.add(std::uint32_t{0x07064b50}).add(std::uint32_t{0}).add(end).add(std::uint32_t{1});
  }
  tail.add(std::uint32_t{0x06054b50})
      .add(std::uint16_t{0})
      .add(std::uint16_t{0})
      .add(static_cast<std::uint16_t>(zip64 ? 0xFFFF : count))
      .add(static_cast<std::uint16_t>(zip64 ? 0xFFFF : count))
      .add(zip64 ? k_in_zip64 : static_cast<std::uint32_t>(end - start))
      .add(zip64 ? k_in_zip64 : static_cast<std::uint32_t>(start))
      .add(std::uint16_t{0});
  write(tail.bytes());
  file_.commit();
}

}  // namespace halfstep::data
