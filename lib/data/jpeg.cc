// JPEG images through libjpeg.

#include <array>
#include <csetjmp>
#include <cstdio>

// libjpeg's headers need the types of <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "core/ranges.h"
#include "data/file.h"
#include "data/image.h"

namespace halfstep::data {
namespace {

/// Warnings that pixels are missing or wrong; others tell of harmless oddities of the writer.
constexpr std::array k_damage{JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF, JWRN_MUST_RESYNC};

/// libjpeg's structs, the target of its longjmp on an error, and its message.
struct JpegReader {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf leave{};
  std::array<char, JMSG_LENGTH_MAX> problem{};

  JpegReader();
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
};

[[noreturn]] void fail_jpeg(j_common_ptr jpeg) {
  auto& reader = *static_cast<JpegReader*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, reader.problem.data());
  std::longjmp(reader.leave, 1);
}

void hear_message(j_common_ptr jpeg, int level) {
  const bool damage = contains(k_damage, jpeg->err->msg_code);
  if (level < 0 && damage) fail_jpeg(jpeg);
}

JpegReader::JpegReader() {
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = fail_jpeg;
  errors.emit_message = hear_message;
  jpeg.client_data = this;
}

// libjpeg leaves the next two functions by longjmp, so no object of theirs may have a destructor.

/// All before the pixels, which are to become grey or RGB. False: see `problem`.
bool read_header(JpegReader& reader, std::span<const std::byte> bytes) {
  if (setjmp(reader.leave) != 0) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.jpeg.client_data = &reader;
  jpeg_mem_src(&reader.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

bool read_rows(JpegReader& reader, std::uint8_t* to) {
  if (setjmp(reader.leave) != 0) return false;
  jpeg_start_decompress(&reader.jpeg);
  const std::size_t sample_bytes = std::size_t{reader.jpeg.output_width} *
                                   static_cast<std::size_t>(reader.jpeg.output_components);
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    JSAMPROW row = to + reader.jpeg.output_scanline * sample_bytes;
    jpeg_read_scanlines(&reader.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> start) {
  return start.size() >= 3 && start[0] == std::byte{0xFF} && start[1] == std::byte{0xD8} &&
         start[2] == std::byte{0xFF};
}

Tensor read_jpeg(std::span<const std::byte> bytes, const std::string& path) {
  JpegReader reader;
  const auto fail = [&] {
    throw file_error(path, "is a JPEG image that cannot be read: {}", reader.problem.data());
  };
  if (!read_header(reader, bytes)) fail();
  const std::int64_t height = reader.jpeg.image_height, width = reader.jpeg.image_width;
  check_image_size(width, height, path);
  // A block of 8 by 8 pixels takes a bit at least.
  constexpr std::int64_t k_max_pixels_a_byte = 8 * 64;
  if (height * width / k_max_pixels_a_byte > static_cast<std::int64_t>(bytes.size())) {
    throw file_error(path, "has too little data for {} x {} pixels", width, height);
  }
  const J_COLOR_SPACE colours = reader.jpeg.jpeg_color_space;
  if (colours == JCS_CMYK || colours == JCS_YCCK) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    "is a JPEG image in the four colours of print (CMYK)",
                    "save it as RGB");
  }
  const bool grey = reader.jpeg.num_components == 1;
  reader.jpeg.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  Tensor image(DType::uint8, {height, width, grey ? 1 : 3});
  if (!read_rows(reader, image.as<std::uint8_t>())) fail();
  return image;
}

}  // namespace halfstep::data
