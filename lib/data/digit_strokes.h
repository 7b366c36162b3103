#pragma once
// The shapes of the digits before distortion: points in a unit square, y downwards.

#include <span>

namespace halfstep::data {

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
