// Source: W3C Portable Network Graphics, second edition.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "data/bytes.h"
#include "data/crc.h"
#include "data/file.h"
#include "data/image_formats.h"
#include "data/inflate.h"

namespace halfstep::data {
namespace {

constexpr std::array<std::uint8_t, 8> k_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::uint8_t k_grey = 0;
constexpr std::uint8_t k_rgb = 2;

struct PngHeader {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::size_t bits = 0;
  std::size_t colours = 0;

  std::size_t row_bytes() const {
    return (static_cast<std::size_t>(width) * colours * bits + 7) / 8;
  }
  std::size_t pixel_bytes() const { return std::max<std::size_t>(1, colours * bits / 8); }
};

struct Chunk {
  std::string_view type;
  std::span<const std::byte> content;
};

PngHeader read_header(std::span<const std::byte> content, const std::string& path) {
  if (content.size() != 13) throw file_error(path, "has a damaged PNG header");
  PngHeader header{.width = load_be<std::uint32_t>(content.data()),
                   .height = load_be<std::uint32_t>(content.data() + 4),
                   .bits = std::to_integer<std::size_t>(content[8])};
  const auto kind = std::to_integer<std::uint8_t>(content[9]);
  const bool interlaced = content[12] != std::byte{0};
  if (header.width < 1 || header.height < 1 || header.width > k_largest_side ||
      header.height > k_largest_side) {
    throw file_error(path,
                     "has {} x {} pixels; 1 to {} a side can be read",
                     header.width,
                     header.height,
                     k_largest_side);
  }
  const bool grey = kind == k_grey &&
                    (header.bits == 1 || header.bits == 2 || header.bits == 4 || header.bits == 8);
  const bool rgb = kind == k_rgb && header.bits == 8;
  if ((!grey && !rgb) || interlaced || content[10] != std::byte{0} || content[11] != std::byte{0}) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    fmt::format("is a PNG of colour type {} with {} bits{}; grey of up to 8 bits "
                                "and RGB of 8 bits, not interlaced, can be read",
                                kind,
                                header.bits,
                                interlaced ? ", interlaced" : ""),
                    "save it without palette and transparency");
  }
  header.colours = rgb ? 3 : 1;
  return header;
}

Chunk take_chunk(std::span<const std::byte>& rest, const std::string& path) {
  constexpr std::size_t around = 12;  // length, type, CRC
  if (rest.size() < around) throw file_error(path, "is a PNG that is cut off");
  const std::size_t length = load_be<std::uint32_t>(rest.data());
  if (length > rest.size() - around) throw file_error(path, "is a PNG that is cut off");
  const Chunk chunk{.type = {reinterpret_cast<const char*>(rest.data()) + 4, 4},
                    .content = rest.subspan(8, length)};
  if (crc_of(rest.subspan(4, 4 + length)) != load_be<std::uint32_t>(rest.data() + 8 + length)) {
    throw file_error(path, "is a PNG with a damaged part (its CRC-32 fails)");
  }
  rest = rest.subspan(around + length);
  return chunk;
}

std::uint8_t paeth(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int to_left = std::abs(estimate - left);
  const int to_above = std::abs(estimate - above);
  const int to_corner = std::abs(estimate - corner);
  if (to_left <= to_above && to_left <= to_corner) return static_cast<std::uint8_t>(left);
  return static_cast<std::uint8_t>(to_above <= to_corner ? above : corner);
}

/// Reverses a row's filter in place; `above` is the previous row, or zeros.
bool unfilter(std::uint8_t filter,
              std::span<std::uint8_t> row,
              std::span<const std::uint8_t> above,
              std::size_t pixel_bytes) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int left = i >= pixel_bytes ? row[i - pixel_bytes] : 0;
    const int corner = i >= pixel_bytes ? above[i - pixel_bytes] : 0;
    int base = 0;
    switch (filter) {
      case 0:
        break;
      case 1:
        base = left;
        break;
      case 2:
        base = above[i];
        break;
      case 3:
        base = (left + above[i]) / 2;
        break;
      case 4:
        base = paeth(left, above[i], corner);
        break;
      default:
        return false;
    }
    row[i] = static_cast<std::uint8_t>(row[i] + base);
  }
  return true;
}

/// Widens values of fewer than 8 bits to 0..255.
void unpack(std::span<const std::uint8_t> row, std::size_t bits, std::span<std::uint8_t> to) {
  const unsigned largest = (1U << bits) - 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t at = i * bits;
    const unsigned value = static_cast<unsigned>(row[at / 8]) >> (8 - bits - at % 8) & largest;
    to[i] = static_cast<std::uint8_t>(value * 255 / largest);
  }
}

}  // namespace

bool is_png(std::span<const std::byte> start) {
  return start.size() >= k_signature.size() &&
         std::equal(k_signature.begin(), k_signature.end(), start.begin(), [](auto a, auto b) {
           return std::byte{a} == b;
         });
}

Tensor read_png(std::span<const std::byte> bytes, const std::string& path) {
  std::span<const std::byte> rest = bytes.subspan(k_signature.size());
  const Chunk first = take_chunk(rest, path);
  if (first.type != "IHDR") throw file_error(path, "has a damaged PNG header");
  const PngHeader header = read_header(first.content, path);
  std::vector<std::byte> compressed;
  for (Chunk chunk = take_chunk(rest, path); chunk.type != "IEND"; chunk = take_chunk(rest, path)) {
    if (chunk.type == "IDAT") {
      compressed.insert(compressed.end(), chunk.content.begin(), chunk.content.end());
    } else if ((chunk.type[0] & 0x20) == 0) {
      throw file_error(path, "has a PNG part '{}', which cannot be read", chunk.type);
    }
  }

  const std::size_t row_bytes = header.row_bytes();
  const std::uint64_t all_bytes = (1 + row_bytes) * static_cast<std::uint64_t>(header.height);
  if (!may_hold(compressed, Wrapper::zlib, path, all_bytes)) {
    throw file_error(path, "has too little data for {} x {} pixels", header.width, header.height);
  }
  Inflater inflater(compressed, Wrapper::zlib, path);
  const auto colours = static_cast<std::int64_t>(header.colours);
  Tensor image(DType::uint8, {header.height, header.width, colours});
  std::vector<std::uint8_t> row(1 + row_bytes);
  std::vector<std::uint8_t> above(row_bytes);
  std::span<std::uint8_t> to = image.span<std::uint8_t>();
  const std::size_t image_row = static_cast<std::size_t>(header.width) * header.colours;
  for (std::int64_t y = 0; y < header.height; ++y) {
    if (inflater.read(std::as_writable_bytes(std::span(row))) < row.size()) {
      throw file_error(path, "has pixels for {} of {} rows", y, header.height);
    }
    const std::span<std::uint8_t> pixels = std::span(row).subspan(1);
    if (!unfilter(row[0], pixels, above, header.pixel_bytes())) {
      throw file_error(path, "has a damaged row {}", y);
    }
    if (header.bits == 8) {
      std::copy(pixels.begin(), pixels.end(), to.begin());
    } else {
      unpack(pixels, header.bits, to.first(image_row));
    }
    to = to.subspan(image_row);
    std::copy(pixels.begin(), pixels.end(), above.begin());
  }
  std::byte extra{};
  if (inflater.read({&extra, 1}) > 0) {
    throw file_error(path, "has more pixels than {} x {}", header.width, header.height);
  }
  return image;
}

}  // namespace halfstep::data
