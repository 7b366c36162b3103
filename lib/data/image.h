#pragma once
// Single pictures for `predict`: PGM and PPM (text and binary) and PNG.

#include <string>

#include "core/tensor.h"

namespace halfstep::data {

/// The picture of a .pgm, .ppm or .png file, recognised by content.
/// PGM and PPM: up to 8 bits a value, scaled to 0..255. PNG: grey of 1, 2, 4 or 8 bits and RGB of
/// 8 bits, not interlaced.
/// Shapes: [height, width, 1] or [height, width, 3]. Dtypes: uint8.
/// Errors: UserError(data) for other or damaged files.
Tensor read_image(const std::string& path);

/// Whether the file starts like one that read_image reads.
/// Errors: UserError(data) when it cannot be opened.
bool is_image(const std::string& path);

}  // namespace halfstep::data
