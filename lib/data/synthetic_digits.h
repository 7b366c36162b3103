#pragma once
// Generated images like handwritten digits: strokes drawn with random shape, pose, pen and noise.

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace halfstep::data {

struct DigitsOptions {
  std::uint64_t seed = 0;
  std::uint32_t part = 0;  ///< 0 training, 1 test: the random streams are disjoint
  std::int64_t samples = 60'000;
};

/// Digits 0 to 9 in random order. Sample i depends on (seed, part, i) alone: on every machine, and
/// for every number of threads and of samples. Shapes: images uint8 [samples, 28, 28, 1], light ink
/// on dark; labels [samples].
Split synthetic_digits(const DigitsOptions& options);

/// Clips of a digit that moves, each frame one or two pixels in one of eight directions; the label
/// is the direction, counted clockwise from right, which no frame alone shows. Sample i depends on
/// (seed, part, i) alone. Shapes: images uint8 [samples, 8, 28, 28, 1], labels [samples].
Split moving_digits(const DigitsOptions& options);

// The shapes of the digits before distortion: points in a unit square, y downwards.

struct Point {
  float x = 0;
  float y = 0;
};

/// A pen movement. `smooth` points are joined by a curve through all of them, others by lines.
struct Stroke {
  std::span<const Point> points;
  bool smooth = false;
};

/// One way of writing a digit.
struct Glyph {
  int digit = 0;
  std::span<const Stroke> strokes;
};

/// All ways of writing the digits 0 to 9; each digit has at least one.
std::span<const Glyph> glyphs();

}  // namespace halfstep::data
