// BMP images. Source: Microsoft, "Bitmap Storage" and "BITMAPV5HEADER" of the GDI reference.

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/ranges.h"
#include "data/bytes.h"
#include "data/file.h"
#include "data/image.h"

namespace halfstep::data {
namespace {

constexpr std::size_t k_file_header = 14, k_core_header = 12, k_info_header = 40;
constexpr std::array<std::uint32_t, 7> k_headers{
    k_core_header, k_info_header, 52, 56, 64, 108, 124};
constexpr std::uint32_t k_uncompressed = 0, k_bitfields = 3;

/// The bits of a pixel that have one of its values; none: the value is not there.
struct Mask {
  std::uint32_t bits = 0;

  /// The value from 0 to 255.
  std::uint8_t of(std::uint32_t pixel) const {
    const std::uint32_t most = bits >> std::countr_zero(bits);
    const std::uint64_t value = (pixel & bits) >> std::countr_zero(bits);
    return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
  }
};

struct Header {
  std::size_t pixels_at = 0, palette_at = 0;
  std::size_t palette_entry = 4;  ///< bytes
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;  ///< of a pixel
  std::uint32_t compression = k_uncompressed;
  std::uint32_t colours = 0;    ///< of the palette
  std::array<Mask, 3> masks{};  ///< red, green, blue
  Mask alpha{};

  bool has_palette() const { return bits <= 8; }
  /// Rows are padded to 4 bytes.
  std::size_t row_bytes() const {
    return (static_cast<std::size_t>(width) * static_cast<std::size_t>(bits) + 31) / 32 * 4;
  }
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T number(std::size_t at) const {
    check(at, sizeof(T));
    return load_le<T>(bytes_.data() + at);
  }
  std::uint8_t byte(std::size_t at) const { return std::to_integer<std::uint8_t>(bytes_[at]); }
  void check(std::size_t at, std::size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) {
      throw file_error(path_, "is a BMP image that is cut off");
    }
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
};

void read_masks(const Reader& file, std::size_t header_bytes, Header& header) {
  constexpr std::size_t k_masks = 54, k_alpha = 66, k_with_alpha = 56;
  if (header.compression == k_uncompressed) {
    if (header.bits == 16) {
      header.masks = {Mask{0x7C00}, Mask{0x03E0}, Mask{0x001F}};
    } else {
      header.masks = {Mask{0xFF0000}, Mask{0x00FF00}, Mask{0x0000FF}};
    }
    return;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    header.masks[i].bits = file.number<std::uint32_t>(k_masks + 4 * i);
  }
  if (header_bytes >= k_with_alpha) header.alpha.bits = file.number<std::uint32_t>(k_alpha);
}

Header read_header(const Reader& file, const std::string& path) {
  const std::size_t header_bytes = file.number<std::uint32_t>(k_file_header);
  Header header;
  header.pixels_at = file.number<std::uint32_t>(10);
  header.palette_at = k_file_header + header_bytes;
  std::int64_t height = 0;
  if (header_bytes == k_core_header) {
    header.width = file.number<std::uint16_t>(18);
    height = file.number<std::uint16_t>(20);
    header.bits = file.number<std::uint16_t>(24);
    header.palette_entry = 3;
  } else {
    header.width = file.number<std::int32_t>(18);
    height = file.number<std::int32_t>(22);
    header.bits = file.number<std::uint16_t>(28);
    header.compression = file.number<std::uint32_t>(30);
    header.colours = file.number<std::uint32_t>(46);
  }
  header.top_down = height < 0;
  header.height = height < 0 ? -height : height;
  check_image_size(header.width, header.height, path);
  const bool direct = contains(std::array{16, 24, 32}, header.bits);
  if (!direct && !contains(std::array{1, 4, 8}, header.bits)) {
    throw file_error(path, "is a BMP image of {} bits a pixel", header.bits);
  }
  const bool masks = header.compression == k_bitfields && direct && header.bits != 24;
  if (header.compression != k_uncompressed && !masks) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    "is a compressed BMP image",
                    "'magick image.bmp image.png' makes an image that can be read");
  }
  if (direct) {
    read_masks(file, header_bytes, header);
  } else if (header.colours == 0 || header.colours > 1U << header.bits) {
    header.colours = 1U << header.bits;
  }
  if (direct && std::ranges::any_of(header.masks, [](Mask mask) { return mask.bits == 0; })) {
    throw file_error(path, "is a BMP image without bits of one of its colours");
  }
  return header;
}

using Colour = std::array<std::uint8_t, 3>;  // red, green, blue

std::vector<Colour> read_palette(const Reader& file, const Header& header) {
  file.check(header.palette_at, header.colours * header.palette_entry);
  std::vector<Colour> colours(header.colours);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const std::size_t at = header.palette_at + i * header.palette_entry;
    colours[i] = {file.byte(at + 2), file.byte(at + 1), file.byte(at)};
  }
  return colours;
}

/// Pixel `x` of the row at byte `row`, up to 32 bits.
std::uint32_t pixel_of(const Reader& file, const Header& header, std::size_t row, std::size_t x) {
  if (header.has_palette()) {
    const std::size_t bits = static_cast<std::size_t>(header.bits), each = 8 / bits;
    const std::uint32_t byte = file.byte(row + x / each);
    return byte >> (8 - bits - x % each * bits) & ((1U << bits) - 1);
  }
  const std::size_t width = static_cast<std::size_t>(header.bits) / 8;
  std::uint32_t pixel = 0;
  for (std::size_t i = 0; i < width; ++i) {
    pixel |= std::uint32_t{file.byte(row + x * width + i)} << (8 * i);
  }
  return pixel;
}

}  // namespace

bool is_bmp(std::span<const std::byte> start) {
  // A table whose first column is called BMI begins with BM, too.
  if (start.size() < k_file_header + 4) return false;
  return start[0] == std::byte{'B'} && start[1] == std::byte{'M'} &&
         contains(k_headers, load_le<std::uint32_t>(start.data() + k_file_header));
}

Tensor read_bmp(std::span<const std::byte> bytes, const std::string& path) {
  const Reader file(bytes, path);
  const Header header = read_header(file, path);
  std::vector<Colour> palette;
  if (header.has_palette()) palette = read_palette(file, header);
  const bool grey = header.has_palette() && std::ranges::all_of(palette, [](const Colour& c) {
                      return c[0] == c[1] && c[1] == c[2];
                    });
  file.check(header.pixels_at, header.row_bytes() * static_cast<std::size_t>(header.height));
  Tensor image(DType::uint8, {header.height, header.width, grey ? 1 : 3});
  std::uint8_t* to = image.as<std::uint8_t>();
  for (std::int64_t y = 0; y < header.height; ++y) {
    const std::int64_t stored = header.top_down ? y : header.height - 1 - y;
    const std::size_t row =
        header.pixels_at + static_cast<std::size_t>(stored) * header.row_bytes();
    for (std::int64_t x = 0; x < header.width; ++x) {
      const std::uint32_t pixel = pixel_of(file, header, row, static_cast<std::size_t>(x));
      Colour colour{};
      if (header.has_palette()) {
        if (pixel >= palette.size()) {
          throw file_error(path, "has colour {} of a palette of {} colours", pixel, palette.size());
        }
        colour = palette[pixel];
      } else {
        for (std::size_t c = 0; c < 3; ++c) colour[c] = header.masks[c].of(pixel);
        if (header.alpha.bits != 0 && header.alpha.of(pixel) != 255) throw transparent(path, "BMP");
      }
      to = std::copy_n(colour.begin(), grey ? 1 : 3, to);
    }
  }
  return image;
}

}  // namespace halfstep::data
