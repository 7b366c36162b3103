#include <array>
#include <optional>

#include "core/files.h"
#include "core/ranges.h"
#include "data/bytes.h"
#include "data/deflate.h"
#include "data/file.h"
#include "data/file_kind.h"
#include "data/tensor_files.h"

namespace halfstep::data {
namespace {

struct IdxType {
  std::uint8_t code;
  std::size_t bytes;
  DType dtype;  ///< of the tensor read
  bool narrow;  ///< stored narrower than `dtype`, as a signed integer
};

constexpr std::array k_idx_types{
    IdxType{0x08, 1, DType::uint8, false},
    IdxType{0x09, 1, DType::int32, true},
    IdxType{0x0B, 2, DType::int32, true},
    IdxType{0x0C, 4, DType::int32, false},
    IdxType{0x0D, 4, DType::float32, false},
    IdxType{0x0E, 8, DType::float64, false},
};

bool ends_in_gz(const std::string& path) { return path.ends_with(".gz"); }

/// The content of an IDX file read sequentially, decompressed where it is compressed.
class Source {
 public:
  Source(std::span<const std::byte> bytes, const std::string& path)
      : all_(bytes), plain_(bytes), path_(path) {
    if (is_gzip(bytes)) inflater_.emplace(bytes, Wrapper::gzip, path);
  }

  std::size_t read(std::span<std::byte> out) {
    if (inflater_) return inflater_->read(out);
    const std::size_t n = std::min(out.size(), plain_.size());
    if (n > 0) std::memcpy(out.data(), plain_.data(), n);
    plain_ = plain_.subspan(n);
    return n;
  }

  /// Whether the file can hold `bytes` bytes from its start on, so that memory may be allocated.
  bool may_hold(std::uint64_t bytes) const {
    return inflater_ ? data::may_hold(all_, Wrapper::gzip, path_, bytes) : bytes <= all_.size();
  }

  void read_all(std::span<std::byte> out, std::string_view what) {
    const std::size_t got = read(out);
    if (got < out.size()) {
      throw file_error(
          path_, "ends in the middle of its {}: {} of {} bytes are there", what, got, out.size());
    }
  }

 private:
  std::span<const std::byte> all_;
  std::span<const std::byte> plain_;  ///< not yet read
  const std::string& path_;
  std::optional<Inflater> inflater_;
};

void widen_idx(std::span<const std::byte> stored, std::size_t bytes, std::span<std::int32_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = bytes == 1 ? load_le<std::int8_t>(stored.data() + i)
                       : load_le<std::int16_t>(stored.data() + 2 * i);
  }
}

}  // namespace

Tensor read_idx(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  if (bytes.empty()) throw file_error(path, "is empty");
  std::array<std::byte, 4> magic{};
  if (ends_in_gz(path) && !is_gzip(bytes)) {
    const bool plain = bytes.size() >= 4 && bytes[0] == std::byte{0} && bytes[1] == std::byte{0};
    if (!plain) throw wrong_file_kind(path, "an IDX file", bytes);
    throw UserError(ErrorKind::data,
                    in_file(path),
                    "is named .gz but holds plain IDX data",
                    "rename it without .gz");
  }
  Source source(bytes, path);
  source.read_all(magic, "header");
  const IdxType* type =
      find_or_null(k_idx_types, std::to_integer<std::uint8_t>(magic[2]), &IdxType::code);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || type == nullptr) {
    throw wrong_file_kind(
        path, "an IDX file", is_gzip(bytes) ? std::span<const std::byte>(magic) : bytes);
  }
  const auto rank = std::to_integer<std::size_t>(magic[3]);
  if (rank == 0 || rank > Shape::k_max_rank) {
    throw file_error(path, "has {} extents; 1 to {} can be read", rank, Shape::k_max_rank);
  }

  std::array<std::byte, 4 * Shape::k_max_rank> header{};
  source.read_all(std::span(header).first(4 * rank), "header");
  std::array<std::int64_t, Shape::k_max_rank> extents{};
  std::string shown;
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = load_be<std::uint32_t>(header.data() + 4 * i);
    shown += fmt::format("{}{}", i > 0 ? " x " : "", extents[i]);
  }
  const std::span<const std::int64_t> dims(extents.data(), rank);
  const std::optional<std::uint64_t> stored_bytes = byte_count(dims, type->bytes);
  if (!stored_bytes || !source.may_hold(magic.size() + 4 * rank + *stored_bytes)) {
    throw file_error(path,
                     "is too short for its header ({} elements of {} bytes): the file has {} bytes",
                     shown,
                     type->bytes,
                     bytes.size());
  }

  Tensor tensor(type->dtype, Shape(dims));
  const auto count = static_cast<std::size_t>(*stored_bytes);
  if (type->narrow) {
    std::vector<std::byte> stored(count);
    source.read_all(stored, "elements");
    swap_bytes(stored, type->bytes);
    widen_idx(stored, type->bytes, tensor.span<std::int32_t>());
  } else {
    const std::span<std::byte> stored(tensor.as<std::byte>(), count);
    source.read_all(stored, "elements");
    if (type->bytes > 1) swap_bytes(stored, type->bytes);
  }
  std::byte extra{};
  if (source.read({&extra, 1}) > 0) {
    throw file_error(path, "continues after the {} elements that its header declares", shown);
  }
  return tensor;
}

void write_idx(const std::string& path, const TensorView& tensor) {
  const IdxType* type = nullptr;
  for (const IdxType& t : k_idx_types) {
    if (!t.narrow && t.dtype == tensor.dtype) type = &t;
  }
  require(type != nullptr, "{} as IDX", name(tensor.dtype));
  std::vector<std::byte> bytes(4 + 4 * tensor.shape.rank() + tensor.bytes());
  bytes[2] = std::byte{type->code};
  bytes[3] = static_cast<std::byte>(tensor.shape.rank());
  for (std::size_t i = 0; i < tensor.shape.rank(); ++i) {
    const auto extent = static_cast<std::uint32_t>(tensor.shape[i]);
    require(extent == tensor.shape[i], "extent {} as IDX", tensor.shape[i]);
    std::memcpy(bytes.data() + 4 + 4 * i, &extent, 4);
  }
  swap_bytes(std::span(bytes).subspan(4, 4 * tensor.shape.rank()), 4);
  const std::span<std::byte> elements = std::span(bytes).subspan(4 + 4 * tensor.shape.rank());
  if (!elements.empty()) std::memcpy(elements.data(), tensor.data, elements.size());
  if (type->bytes > 1) swap_bytes(elements, type->bytes);

  OutputFile file(path);
  file.write(ends_in_gz(path) ? deflate(bytes, Wrapper::gzip) : bytes);
  file.commit();
}

}  // namespace halfstep::data
