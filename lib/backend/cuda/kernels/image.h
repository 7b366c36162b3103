#pragma once
// Random flips and translations of images [batch, rows, columns, channels]. Sample n uses the
// random words at (seed, mix(stream, *ordinal), n): word 0 for rows, word 1 for columns. Dtypes:
// uint8 and floating.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

struct ImageBatch {
  DType dtype{};
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t channels = 1;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::int64_t first = 0;  ///< samples of the batch before the first image
  const std::int64_t* ordinal = nullptr;
};

/// Mirrors an image where its uniform number is below 0.5.
struct FlipParams {
  ImageBatch images;
  bool vertical = false;
  bool horizontal = false;
};
void random_flip(Stream stream, const FlipParams& params);

/// The value of cells outside of the image.
///   constant  k k | a b c d | k k      nearest  a a | a b c d | d d
///   reflect   b a | a b c d | d c      wrap     c d | a b c d | a b
enum class FillMode { constant, nearest, reflect, wrap };

/// Pixel (r, c) reads the input at (r - down, c - right); shifts are uniform between low and high,
/// as fractions of height and width.
struct TranslationParams {
  ImageBatch images;
  float height_low = 0;
  float height_high = 0;
  float width_low = 0;
  float width_high = 0;
  float fill_value = 0;
  FillMode fill = FillMode::reflect;
  bool bilinear = true;
};
void random_translation(Stream stream, const TranslationParams& params);

}  // namespace halfstep::backend::cuda::kernels
