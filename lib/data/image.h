#pragma once
// Image files: PGM and PPM (text and binary), PNG, JPEG and BMP.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "config/data_spec.h"
#include "core/error.h"
#include "core/tensor.h"

namespace halfstep::data {

/// The image of a .pgm, .ppm, .png, .jpg or .bmp file, recognised by content.
/// PGM and PPM: up to 8 bits a value, scaled to 0..255. PNG: grey, RGB or palette; 16 bits are
/// rounded to 8. JPEG: grey or colour, as stored: a rotation noted in the file is not applied. BMP:
/// uncompressed; a grey palette gives a grey image. Alpha must be opaque in every pixel.
/// Shapes: [height, width, 1] or [height, width, 3]. Dtypes: uint8.
/// Errors: UserError(data) for other or damaged files.
Tensor read_image(const std::string& path);

/// Whether the file starts like one that read_image reads.
/// Errors: UserError(data) when it cannot be opened.
bool is_image(const std::string& path);

using Resize = config::DataResize;

/// The size and channels that images are converted to. 0 keeps those of the image.
struct ImageConversion {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;  ///< 1 (grey) or 3 (RGB)
  bool convert = false;       ///< convert images with other channels; else an error
  Resize resize = Resize::none;
};

/// The converted image. Grey becomes RGB by repetition, RGB becomes grey as luma (ITU-R
/// BT.601: 0.299 R + 0.587 G + 0.114 B, rounded).
/// Errors: as read_image; UserError(data) naming the file for a size or channels that differ and
/// are not to be converted.
Tensor read_image(const std::string& path, const ImageConversion& conversion);
/// The same for an image that was read from `path`.
Tensor convert_image(Tensor image, const ImageConversion& conversion, const std::string& path);

/// Bilinear resize with antialiasing: a separable triangle filter whose support scales with the
/// pixels of the smaller image; weights are renormalised at the edges. Shapes: [height, width,
/// channels], any two sizes. Dtypes: uint8, computed in float32, rounded.
Tensor resize_image(const Tensor& image, std::int64_t height, std::int64_t width);

/// The largest center crop with the aspect ratio of `height` to `width`, as in Keras's
/// smart_resize(). Shapes: [height, width, channels].
Tensor cropped_to(const Tensor& image, std::int64_t height, std::int64_t width);

// The readers that read_image() chooses from, and their signatures.

bool is_bmp(std::span<const std::byte> start);
bool is_jpeg(std::span<const std::byte> start);
bool is_png(std::span<const std::byte> start);
bool is_pnm(std::span<const std::byte> start);
Tensor read_bmp(std::span<const std::byte> bytes, const std::string& path);
Tensor read_jpeg(std::span<const std::byte> bytes, const std::string& path);
Tensor read_png(std::span<const std::byte> bytes, const std::string& path);
Tensor read_pnm(std::span<const std::byte> bytes, const std::string& path);

/// Errors: UserError(data) unless both are from 1 to config::k_max_image_side.
void check_image_size(std::int64_t width, std::int64_t height, const std::string& path);

/// The error for an image of the format `kind`, such as "PNG", with pixels that are not opaque.
UserError transparent(const std::string& path, std::string_view kind);

/// The content of a PNG file. Shapes: [height, width, 1 or 3]. Dtypes: uint8.
std::string png_of(const Tensor& image);

}  // namespace halfstep::data
