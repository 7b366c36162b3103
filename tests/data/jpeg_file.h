#pragma once
// JPEG files for tests, written by libjpeg.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

// libjpeg's header needs the types of <cstdio>.
#include <jpeglib.h>

namespace halfstep::data::testing {

struct JpegOptions {
  J_COLOR_SPACE colours = JCS_RGB;  ///< of the pixels; JCS_GRAYSCALE and JCS_CMYK too
  int quality = 100;
  bool progressive = false;
  unsigned restart_interval = 0;  ///< blocks between restart markers; 0: none
};

/// Pixels of [height, width, channels] bytes. Errors of libjpeg end the process.
inline std::vector<std::byte> jpeg(int height,
                                   int width,
                                   std::span<const std::uint8_t> pixels,
                                   JpegOptions options) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = static_cast<int>(pixels.size()) / (height * width);
  jpeg.in_color_space = options.colours;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  jpeg.restart_interval = options.restart_interval;
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  const std::size_t sample_bytes = pixels.size() / static_cast<std::size_t>(height);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(pixels.data() + jpeg.next_scanline * sample_bytes);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  const auto written = std::as_bytes(std::span(memory, size));
  std::vector<std::byte> file(written.begin(), written.end());
  std::free(memory);
  jpeg_destroy_compress(&jpeg);
  return file;
}

/// Pixels that all are `color`.
inline std::vector<std::byte> flat_jpeg(int height,
                                        int width,
                                        std::vector<std::uint8_t> color,
                                        JpegOptions options) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < height * width; ++i) {
    pixels.insert(pixels.end(), color.begin(), color.end());
  }
  return jpeg(height, width, pixels, options);
}

}  // namespace halfstep::data::testing
