#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/ranges.h"
#include "data/bytes.h"
#include "data/file.h"
#include "data/tensor_files.h"

namespace halfstep::data {
namespace {

constexpr std::string_view k_magic = "\x93NUMPY";

struct ElementType {
  std::string_view code;  ///< NumPy's, without the byte order
  DType stored;
  DType read;
};

constexpr std::array k_types{
    ElementType{"u1", DType::uint8, DType::uint8},
    ElementType{"b1", DType::boolean, DType::boolean},
    ElementType{"i1", DType::int8, DType::int32},
    ElementType{"i2", DType::int16, DType::int32},
    ElementType{"u2", DType::uint16, DType::int32},
    ElementType{"i4", DType::int32, DType::int32},
    ElementType{"u4", DType::uint32, DType::int64},
    ElementType{"i8", DType::int64, DType::int64},
    ElementType{"u8", DType::uint64, DType::int64},
    ElementType{"f2", DType::float16, DType::float16},
    ElementType{"f4", DType::float32, DType::float32},
    ElementType{"f8", DType::float64, DType::float64},
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> extents;
};

/// Parses the Python literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
/// }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Header parse() {
    Header header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        if (peek() == '[') throw file_error(what_, "is an array of records; one type is needed");
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.extents = tuple();
        has_shape = true;
      } else {
        fail();
      }
      if (!accept(',') && peek() != '}') fail();
    }
    if (!has_descr || !has_order || !has_shape || peek() != '\0') fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { throw file_error(what_, "has a damaged NPY header"); }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail();
    std::string token(text_.substr(at_, end - at_));
    at_ = end + 1;
    return token;
  }
  bool boolean() {
    peek();
    for (const std::string_view literal : {"False", "True"}) {
      if (text_.substr(at_).starts_with(literal)) {
        at_ += literal.size();
        return literal == "True";
      }
    }
    fail();
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t value = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error != std::errc{} || value < 0) fail();
      at_ += static_cast<std::size_t>(end - begin);
      values.push_back(value);
      if (!accept(',') && peek() != ')') fail();
    }
    return values;
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
};

/// Reorders elements from column-major to row-major.
std::vector<std::byte> to_row_major(std::span<const std::byte> from,
                                    std::span<const std::int64_t> extents,
                                    std::size_t width) {
  std::vector<std::byte> to(from.size());
  std::vector<std::size_t> strides(extents.size());
  std::size_t stride = width;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    strides[i] = stride;
    stride *= static_cast<std::size_t>(extents[i]);
  }
  std::vector<std::int64_t> index(extents.size());
  std::size_t at = 0;
  for (std::size_t written = 0; written < to.size(); written += width) {
    std::memcpy(to.data() + written, from.data() + at, width);
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < extents[axis]) break;
      at -= strides[axis] * static_cast<std::size_t>(extents[axis]);
      index[axis] = 0;
    }
  }
  return to;
}

template <class From, class To>
void widen(std::span<const std::byte> from, const Tensor& to) {
  const std::span<To> out = to.span<To>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = load_le<From>(from.data() + i * sizeof(From));
  }
}

void store(std::span<const std::byte> elements, DType stored, const Tensor& to) {
  switch (stored) {
    case DType::int8:
      return widen<std::int8_t, std::int32_t>(elements, to);
    case DType::int16:
      return widen<std::int16_t, std::int32_t>(elements, to);
    case DType::uint16:
      return widen<std::uint16_t, std::int32_t>(elements, to);
    case DType::uint32:
      for (std::size_t i = 0; i < elements.size() / 4; ++i) {
        to.as<std::int64_t>()[i] = load_le<std::uint32_t>(elements.data() + 4 * i);
      }
      return;
    default:
      if (!elements.empty()) std::memcpy(to.as<std::byte>(), elements.data(), elements.size());
  }
}

}  // namespace

Tensor read_npy(std::span<const std::byte> bytes, const std::string& what) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(k_magic) || text.size() < 10) {
    throw file_error(what, "is not a NumPy array");
  }
  const int version = static_cast<unsigned char>(text[6]);
  const std::size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || text.size() < start) {
    throw file_error(what, "has NPY version {}; 1 to 3 can be read", version);
  }
  const std::size_t length = version == 1 ? load_le<std::uint16_t>(bytes.data() + 8)
                                          : load_le<std::uint32_t>(bytes.data() + 8);
  if (length > text.size() - start) throw file_error(what, "ends in the middle of its NPY header");
  const Header header = HeaderParser(text.substr(start, length), what).parse();

  const char order = header.descr.empty() ? ' ' : header.descr[0];
  const std::string_view code = std::string_view(header.descr).substr(header.descr.empty() ? 0 : 1);
  const auto* type = std::ranges::find(k_types, code, &ElementType::code);
  if (type == k_types.end() || std::string_view("<>|=").find(order) == std::string_view::npos) {
    throw file_error(what, "has elements of type '{}', which cannot be read", header.descr);
  }
  if (header.extents.size() > Shape::k_max_rank) {
    throw file_error(
        what, "has {} axes; {} are the most", header.extents.size(), Shape::k_max_rank);
  }
  const std::size_t width = size_bytes(type->stored);
  std::span<const std::byte> elements = bytes.subspan(start + length);
  const std::optional<std::uint64_t> wanted = byte_count(header.extents, width);
  if (!wanted || *wanted != elements.size()) {
    throw file_error(what,
                     "has {} bytes of elements where its header says {} of {} bytes each",
                     elements.size(),
                     wanted ? to_string(Shape(header.extents)) : "more than can be",
                     width);
  }
  std::vector<std::byte> reordered;
  if (header.fortran_order && header.extents.size() > 1) {
    reordered = to_row_major(elements, header.extents, width);
    elements = reordered;
  }
  if (order == '>' && width > 1) {
    if (reordered.empty()) reordered.assign(elements.begin(), elements.end());
    swap_bytes(reordered, width);
    elements = reordered;
  }
  if (type->stored == DType::boolean &&
      std::ranges::any_of(elements, [](std::byte b) { return b > std::byte{1}; })) {
    throw file_error(what, "has booleans that are neither 0 nor 1");
  }
  if (type->stored == DType::uint64) {
    for (std::size_t at = 0; at < elements.size(); at += width) {
      const auto value = load_le<std::uint64_t>(elements.data() + at);
      if (value >> 63 != 0) throw file_error(what, "has {}, which is beyond int64", value);
    }
  }
  Tensor tensor(type->read, Shape(header.extents));
  store(elements, type->stored, tensor);
  return tensor;
}

std::vector<std::byte> npy_header(DType dtype, const Shape& shape) {
  const ElementType* type = find_or_null(k_types, dtype, &ElementType::stored);
  require(type != nullptr, "{} as a NumPy array", name(dtype));
  std::string extents;
  for (const std::int64_t extent : shape.dims()) extents += fmt::format("{}, ", extent);
  if (shape.rank() > 1) extents.resize(extents.size() - 2);
  if (shape.rank() == 1) extents.resize(extents.size() - 1);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_bytes(dtype) == 1 ? '|' : '<',
                                 type->code,
                                 extents);
  const std::size_t start = 10;
  const std::size_t all = (start + text.size() + 1 + 63) / 64 * 64;
  text.resize(all - start - 1, ' ');
  text += '\n';
  std::string header(k_magic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  header += text;
  const auto bytes = std::as_bytes(std::span(header));
  return {bytes.begin(), bytes.end()};
}

}  // namespace halfstep::data
