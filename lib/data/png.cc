// PNG images through libpng.

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "data/bytes.h"
#include "data/file.h"
#include "data/image.h"

namespace halfstep::data {
namespace {

constexpr std::array<std::uint8_t, 8> k_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/// libpng's structs, the bytes that it has not read yet, and its error message.
struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;
  std::size_t stored_bytes = 0;  ///< of the pixels before decompression
  std::string problem;

  explicit PngReader(std::span<const std::byte> bytes);
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

[[noreturn]] void fail_png(png_structp png, png_const_charp message) {
  static_cast<PngReader*>(png_get_error_ptr(png))->problem = message;
  png_longjmp(png, 1);
}

/// Warnings are about parts beside the pixels, such as text and colour profiles.
void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& rest = static_cast<PngReader*>(png_get_io_ptr(png))->rest;
  if (count > rest.size()) png_error(png, "it is cut off");
  std::memcpy(to, rest.data(), count);
  rest = rest.subspan(count);
}

PngReader::PngReader(std::span<const std::byte> bytes)
    : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail_png, ignore_warning)),
      info(png == nullptr ? nullptr : png_create_info_struct(png)),
      rest(bytes) {
  if (info == nullptr) throw std::bad_alloc();
  png_set_read_fn(png, this, read_bytes);
}

// libpng leaves the next two functions by longjmp, so no object of theirs may have a destructor.

/// All before the pixels, which are to become grey or RGB of 8 bits. False: see `problem`.
bool read_info(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_user_limits(reader.png, config::k_max_image_side, config::k_max_image_side);
  png_read_info(reader.png, reader.info);
  reader.stored_bytes =
      png_get_rowbytes(reader.png, reader.info) * png_get_image_height(reader.png, reader.info);
  png_set_palette_to_rgb(reader.png);
  png_set_expand_gray_1_2_4_to_8(reader.png);
  if (png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(reader.png);
  png_set_scale_16(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_rows(PngReader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

/// Checks the extents in the header; libpng checks the rest of it.
void check_size(std::span<const std::byte> bytes, const std::string& path) {
  constexpr std::size_t k_type = 12, k_width = 16, k_height = 20, k_header_end = 33;
  const bool header =
      bytes.size() >= k_header_end && std::memcmp(bytes.data() + k_type, "IHDR", 4) == 0;
  if (!header) throw file_error(path, "has a damaged PNG header");
  const auto width = load_be<std::uint32_t>(bytes.data() + k_width);
  const auto height = load_be<std::uint32_t>(bytes.data() + k_height);
  check_image_size(width, height, path);
}

/// The image without its last channel, which must be opaque in every pixel.
Tensor without_alpha(const Tensor& image, const std::string& path) {
  const Shape& shape = image.shape();
  const std::int64_t channels = shape[2] - 1;
  Tensor opaque(DType::uint8, {shape[0], shape[1], channels});
  const std::uint8_t* from = image.as<std::uint8_t>();
  std::uint8_t* to = opaque.as<std::uint8_t>();
  for (std::int64_t i = 0, pixels = shape[0] * shape[1]; i < pixels; ++i) {
    to = std::copy_n(from, channels, to);
    from += channels;
    if (*from++ != 255) throw transparent(path, "PNG");
  }
  return opaque;
}

}  // namespace

bool is_png(std::span<const std::byte> start) {
  return start.size() >= k_signature.size() &&
         std::memcmp(start.data(), k_signature.data(), k_signature.size()) == 0;
}

Tensor read_png(std::span<const std::byte> bytes, const std::string& path) {
  check_size(bytes, path);
  PngReader reader(bytes);
  const auto fail = [&] {
    throw file_error(path, "is a PNG image that cannot be read: {}", reader.problem);
  };
  if (!read_info(reader)) fail();
  const std::int64_t height = png_get_image_height(reader.png, reader.info);
  const std::int64_t width = png_get_image_width(reader.png, reader.info);
  // Deflate grows by no more than this factor.
  constexpr std::size_t k_max_growth = 1032;
  if (reader.stored_bytes / k_max_growth > bytes.size()) {
    throw file_error(path, "has too little data for {} x {} pixels", width, height);
  }
  const std::int64_t channels = png_get_channels(reader.png, reader.info);
  Tensor image(DType::uint8, {height, width, channels});
  require(png_get_rowbytes(reader.png, reader.info) == static_cast<std::size_t>(width * channels),
          "rows of {} bytes",
          png_get_rowbytes(reader.png, reader.info));
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < height; ++y) {
    rows.push_back(image.as<std::uint8_t>() + y * width * channels);
  }
  if (!read_rows(reader, rows.data())) fail();
  return channels % 2 == 0 ? without_alpha(image, path) : std::move(image);
}

std::string png_of(const Tensor& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.shape()[0]);
  png.width = static_cast<png_uint_32>(image.shape()[1]);
  png.format = image.shape()[2] == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::string content(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
  png_alloc_size_t size = content.size();
  const int written = png_image_write_to_memory(
      &png, content.data(), &size, 0, image.as<std::uint8_t>(), 0, nullptr);
  require(written != 0, "libpng: {}", png.message);
  content.resize(size);
  return content;
}

}  // namespace halfstep::data
