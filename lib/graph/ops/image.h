#pragma once
// The draws and the geometry of RandomFlip and RandomTranslation (image.cc), shared by the kernels
// of all devices. The functions are constexpr because nvcc lets device code call such functions.

#include <cmath>
#include <cstdint>

#include "core/philox.h"

namespace halfstep::graph {
class Attrs;
}

namespace halfstep::graph::ops {

/// The draw of a batch: sample n uses the random words at (seed, mix(stream, ordinal), first + n).
struct ImageDraw {
  std::uint64_t seed, stream;
  std::int64_t first;  ///< samples of the batch that lower ranks have

  struct Uniforms {
    float rows, columns;  ///< words 0 and 1, in [0, 1)
  };

  explicit ImageDraw(const Attrs& attrs);
  constexpr Uniforms at(std::int64_t ordinal, std::int64_t n) const {
    const auto words = random_words(seed,
                                    mix(stream, static_cast<std::uint64_t>(ordinal)),
                                    static_cast<std::uint64_t>(first + n));
    return {to_uniform(words[0]), to_uniform(words[1])};
  }
};

/// The axes along which a RandomFlip mirrors an image, each where its number is below 0.5.
struct ImageFlip {
  ImageDraw draw;
  bool vertical, horizontal;

  explicit ImageFlip(const Attrs& attrs);
};

/// The value of cells outside of the image.
///   constant  k k | a b c d | k k      nearest  a a | a b c d | d d
///   reflect   b a | a b c d | d c      wrap     c d | a b c d | a b
enum class FillMode : std::uint8_t { constant, nearest, reflect, wrap };

/// A RandomTranslation: pixel (r, c) reads the input at (r - down, c - right).
struct ImageTranslation {
  ImageDraw draw;
  float height_low, height_high, width_low, width_high;  ///< fractions of height and width
  float fill_value;
  FillMode fill;
  bool bilinear;

  /// In cells.
  struct Shift {
    float down, right;
  };
  /// Two neighbouring cells along an axis, -1 for the fill value, and the weight of the second.
  struct Neighbours {
    std::int64_t first, second;
    float weight;
  };

  explicit ImageTranslation(const Attrs& attrs);

  /// Sample n's.
  constexpr Shift shift(std::int64_t ordinal,
                        std::int64_t n,
                        std::int64_t rows,
                        std::int64_t columns) const {
    const ImageDraw::Uniforms u = draw.at(ordinal, n);
    const float down = height_low + (height_high - height_low) * u.rows;
    const float right = width_low + (width_high - width_low) * u.columns;
    return {down * static_cast<float>(rows), right * static_cast<float>(columns)};
  }
  /// The cells that cell `i` reads along an axis of `size` cells.
  constexpr Neighbours neighbours(std::int64_t i, float shifted_by, std::int64_t size) const {
    const float from = static_cast<float>(i) - shifted_by;
    const float low = std::floor(bilinear ? from : from + 0.5F);
    const auto cell = static_cast<std::int64_t>(low);
    return {folded(cell, size), folded(cell + 1, size), bilinear ? from - low : 0.0F};
  }
  /// The cell in [0, size) that replaces cell `i`, or -1 for the fill value.
  constexpr std::int64_t folded(std::int64_t i, std::int64_t size) const {
    if (i >= 0 && i < size) return i;
    if (fill == FillMode::constant) return -1;
    if (fill == FillMode::nearest) return i < 0 ? 0 : size - 1;
    const std::int64_t period = fill == FillMode::wrap ? size : 2 * size;
    const std::int64_t at = (i % period + period) % period;
    return at < size ? at : period - 1 - at;
  }
  /// A weight of 0 must not turn an infinite neighbour into NaN.
  template <class Real>
  static constexpr Real between(Real a, Real b, float weight) {
    return weight == 0 ? a : a * (1 - weight) + b * weight;
  }
};

}  // namespace halfstep::graph::ops
