#include "data/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/parallel.h"
#include "core/philox.h"

// Only +, -, *, / and sqrt on floats are used, which IEEE 754 rounds exactly, without contraction
// to FMA, so that every machine generates the same pixels.

namespace halfstep::data {
namespace {

constexpr std::string_view k_stream = "synthetic digits";
constexpr std::string_view k_clip_stream = "moving digits";
constexpr std::string_view k_motion_stream = "motion of digits";
constexpr std::int64_t k_frames = 8;
constexpr int k_side = 28;
constexpr int k_pixels = k_side * k_side;

// The amount of variation; chosen so that a linear model stays below 90 % accuracy and a small
// convolutional network exceeds 98 %.
constexpr float k_point_jitter = 0.03F;  // of the unit square
constexpr float k_elastic = 0.07F;       // largest shift of a node of the elastic grid
constexpr float k_half_turn = 0.16F;     // tan of half the largest rotation: 18 degrees
constexpr float k_shear = 0.30F;
constexpr float k_smallest_scale = 0.62F;
constexpr float k_largest_scale = 1.05F;
constexpr float k_shift = 3.2F;      // pixels
constexpr float k_thinnest = 0.55F;  // radius of the pen, pixels
constexpr float k_thickest = 1.60F;
constexpr float k_faintest_ink = 0.55F;
constexpr float k_noise = 0.12F;          // largest standard deviation
constexpr float k_largest_blot = 0.5F;    // ink of stray marks, relative to the digit's
constexpr std::uint64_t k_max_blots = 3;  // 0 to 2 of them

/// Uniform in [low, high).
float between(RandomStream& random, float low, float high) {
  return low + (high - low) * random.uniform();
}

/// A smooth random field of shifts: cubic B-spline over a 6x6 grid of random vectors.
class ElasticField {
 public:
  explicit ElasticField(RandomStream& random) {
    for (Point& node : nodes_) {
      node = {between(random, -k_elastic, k_elastic), between(random, -k_elastic, k_elastic)};
    }
  }

  Point shift(Point at) const {
    const Cell x = cell(at.x);
    const Cell y = cell(at.y);
    Point sum;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        const float weight = y.weights[i] * x.weights[j];
        const Point& node = nodes_[(y.first + i) * k_nodes + x.first + j];
        sum.x += weight * node.x;
        sum.y += weight * node.y;
      }
    }
    // The B-spline attenuates independent nodes; the factor 2 compensates.
    return {2 * sum.x, 2 * sum.y};
  }

 private:
  static constexpr std::size_t k_nodes = 6;

  struct Cell {
    std::size_t first = 0;
    std::array<float, 4> weights{};
  };

  static Cell cell(float position) {
    const float scaled = std::clamp(position, 0.0F, 1.0F) * (k_nodes - 3);
    const auto first = std::min<std::size_t>(static_cast<std::size_t>(scaled), k_nodes - 4);
    const float t = scaled - static_cast<float>(first);
    const float s = 1 - t;
    return {first,
            {s * s * s / 6,
             (3 * t * t * t - 6 * t * t + 4) / 6,
             (3 * s * s * s - 6 * s * s + 4) / 6,
             t * t * t / 6}};
  }

  std::array<Point, k_nodes * k_nodes> nodes_;
};

/// Maps the unit square to pixels: shear, scale, rotation, shift.
struct Pose {
  float xx = 0, xy = 0, yx = 0, yy = 0, x0 = 0, y0 = 0;

  explicit Pose(RandomStream& random) {
    // Rotation by the angle whose half has tangent t, without trigonometric functions.
    const float t = between(random, -k_half_turn, k_half_turn);
    const float cosine = (1 - t * t) / (1 + t * t);
    const float sine = 2 * t / (1 + t * t);
    const float shear = between(random, -k_shear, k_shear);
    const float width = k_side * between(random, k_smallest_scale, k_largest_scale);
    const float height = k_side * between(random, k_smallest_scale, k_largest_scale);
    xx = cosine * width;
    xy = cosine * width * shear - sine * height;
    yx = sine * width;
    yy = sine * width * shear + cosine * height;
    x0 = k_side / 2.0F + between(random, -k_shift, k_shift);
    y0 = k_side / 2.0F + between(random, -k_shift, k_shift);
  }

  Point operator()(Point p) const {
    const float x = p.x - 0.5F;
    const float y = p.y - 0.5F;
    return {xx * x + xy * y + x0, yx * x + yy * y + y0};
  }
};

/// Ink on paper, 0 to 1.
class Canvas {
 public:
  /// A line with round ends whose radius goes from `from_radius` to `to_radius`.
  void line(Point from, Point to, float from_radius, float to_radius, float ink) {
    const float dx = to.x - from.x;
    const float dy = to.y - from.y;
    const float length2 = std::max(dx * dx + dy * dy, 1e-6F);
    const float reach = std::max(from_radius, to_radius) + 0.5F;
    const int left = pixel(std::min(from.x, to.x) - reach);
    const int right = pixel(std::max(from.x, to.x) + reach);
    const int top = pixel(std::min(from.y, to.y) - reach);
    const int bottom = pixel(std::max(from.y, to.y) + reach);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const float px = static_cast<float>(x) + 0.5F - from.x;
        const float py = static_cast<float>(y) + 0.5F - from.y;
        const float along = std::clamp((px * dx + py * dy) / length2, 0.0F, 1.0F);
        const float ex = px - along * dx;
        const float ey = py - along * dy;
        const float radius = from_radius + along * (to_radius - from_radius);
        const float covered = std::clamp(radius + 0.5F - std::sqrt(ex * ex + ey * ey), 0.0F, 1.0F);
        float& value = values_[static_cast<std::size_t>(y * k_side + x)];
        value = std::max(value, ink * covered);
      }
    }
  }

  const std::array<float, k_pixels>& values() const { return values_; }

 private:
  static int pixel(float position) {
    return static_cast<int>(std::clamp(position, 0.0F, static_cast<float>(k_side - 1)));
  }

  std::array<float, k_pixels> values_{};
};

/// The curve through b and c, at t in [0, 1]; a and d are their neighbours (Catmull and Rom).
Point curve(Point a, Point b, Point c, Point d, float t) {
  const auto at = [t](float p, float q, float r, float s) {
    return q + 0.5F * t * ((r - p) + t * ((2 * p - 5 * q + 4 * r - s) + t * (3 * (q - r) + s - p)));
  };
  return {at(a.x, b.x, c.x, d.x), at(a.y, b.y, c.y, d.y)};
}

/// Draws one stroke with its points jittered, distorted and posed.
void draw(const Stroke& stroke,
          const ElasticField& field,
          const Pose& pose,
          float thickness,
          float ink,
          RandomStream& random,
          Canvas& canvas) {
  constexpr std::size_t k_max_points = 16;
  constexpr int k_pieces = 5;
  std::array<Point, k_max_points> points{};
  const std::size_t count = std::min(stroke.points.size(), k_max_points);
  for (std::size_t i = 0; i < count; ++i) {
    points[i] = {stroke.points[i].x + between(random, -k_point_jitter, k_point_jitter),
                 stroke.points[i].y + between(random, -k_point_jitter, k_point_jitter)};
  }
  // The radius varies linearly along the stroke, like the pressure of a pen.
  float radius = thickness * between(random, 0.8F, 1.2F);
  const float last_radius = thickness * between(random, 0.8F, 1.2F);
  const float growth = (last_radius - radius) / static_cast<float>((count - 1) * k_pieces);
  const auto to_pixels = [&](Point p) {
    const Point shift = field.shift(p);
    return pose({p.x + shift.x, p.y + shift.y});
  };
  Point from = to_pixels(points[0]);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const Point b = points[i];
    const Point c = points[i + 1];
    // Straight lines follow the elastic field as well, so they are subdivided too.
    const Point a = stroke.smooth && i > 0 ? points[i - 1] : Point{2 * b.x - c.x, 2 * b.y - c.y};
    const Point d =
        stroke.smooth && i + 2 < count ? points[i + 2] : Point{2 * c.x - b.x, 2 * c.y - b.y};
    for (int piece = 1; piece <= k_pieces; ++piece) {
      const Point to = to_pixels(curve(a, b, c, d, static_cast<float>(piece) / k_pieces));
      canvas.line(from, to, radius, radius + growth, ink);
      radius += growth;
      from = to;
    }
  }
}

/// Short stray marks that do not belong to the digit.
void draw_blots(float ink, RandomStream& random, Canvas& canvas) {
  const std::uint64_t count = random.below(k_max_blots);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Point from{between(random, 0, k_side), between(random, 0, k_side)};
    const Point to{from.x + between(random, -5, 5), from.y + between(random, -5, 5)};
    const float radius = between(random, 0.3F, 1.0F);
    canvas.line(from, to, radius, radius, ink * between(random, 0.2F, k_largest_blot));
  }
}

/// The glyphs of each digit, as a range of glyphs().
struct GlyphRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

std::array<GlyphRange, 10> glyph_ranges() {
  std::array<GlyphRange, 10> ranges;
  for (std::size_t i = 0; i < glyphs().size(); ++i) {
    GlyphRange& range = ranges[static_cast<std::size_t>(glyphs()[i].digit)];
    if (range.count == 0) range.first = i;
    ++range.count;
  }
  return ranges;
}

/// Draws one image; returns its digit.
std::int32_t draw_sample(const std::array<GlyphRange, 10>& ranges,
                         RandomStream random,
                         std::uint8_t* pixels) {
  const auto digit = static_cast<std::size_t>(random.below(ranges.size()));
  const Glyph& glyph = glyphs()[ranges[digit].first + random.below(ranges[digit].count)];
  const ElasticField field(random);
  const Pose pose(random);
  const float thickness = between(random, k_thinnest, k_thickest);
  const float ink = between(random, k_faintest_ink, 1.0F);
  const float noise = k_noise * random.uniform();
  Canvas canvas;
  draw_blots(ink, random, canvas);
  for (const Stroke& stroke : glyph.strokes) {
    draw(stroke, field, pose, thickness, ink, random, canvas);
  }
  for (std::size_t i = 0; i < k_pixels; ++i) {
    // The sum of the four bytes of a random word is nearly normal: mean 510, deviation 147.8.
    const std::uint32_t word = random.next();
    const auto sum = static_cast<float>((word & 0xFFU) + (word >> 8 & 0xFFU) +
                                        (word >> 16 & 0xFFU) + (word >> 24));
    const float value = canvas.values()[i] + noise * (sum - 510) / 147.8F;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0F, 1.0F) * 255 + 0.5F);
  }
  return static_cast<std::int32_t>(digit);
}

/// One frame: the digit moved down and right; beyond its edges the paper is blank.
void move(const std::uint8_t* digit, std::int64_t down, std::int64_t right, std::uint8_t* frame) {
  for (std::int64_t row = 0; row < k_side; ++row) {
    for (std::int64_t column = 0; column < k_side; ++column) {
      const std::int64_t r = row - down, c = column - right;
      const bool inside = r >= 0 && r < k_side && c >= 0 && c < k_side;
      *frame++ = inside ? digit[r * k_side + c] : std::uint8_t{0};
    }
  }
}

std::int32_t draw_clip(const std::array<GlyphRange, 10>& ranges,
                       RandomStream of_digit,
                       RandomStream of_motion,
                       std::uint8_t* pixels) {
  constexpr std::array<std::array<int, 2>, 8> k_moves{
      {{0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}};
  std::array<std::uint8_t, k_pixels> digit{};
  draw_sample(ranges, of_digit, digit.data());
  const auto direction = static_cast<std::size_t>(of_motion.below(k_moves.size()));
  const auto speed = static_cast<std::int64_t>(1 + of_motion.below(2));
  for (std::int64_t frame = 0; frame < k_frames; ++frame) {
    const std::int64_t way = speed * frame - speed * (k_frames - 1) / 2;
    move(digit.data(),
         way * k_moves[direction][0],
         way * k_moves[direction][1],
         pixels + frame * k_pixels);
  }
  return static_cast<std::int32_t>(direction);
}

/// Calls draw(i, the sample's number in the random streams) for each sample, on all threads.
template <class F>
void for_each_sample(const DigitsOptions& options, F&& draw) {
  const std::uint64_t stream = std::uint64_t{options.part} << 40;
  parallel_for(options.samples, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) draw(i, stream + static_cast<std::uint64_t>(i));
  });
}

std::uint64_t key_of(const DigitsOptions& options, std::string_view stream) {
  return mix(options.seed, name_key(stream.data(), stream.size()));
}

}  // namespace

Split synthetic_digits(const DigitsOptions& options) {
  Split split{Tensor(DType::uint8, {options.samples, k_side, k_side, 1}),
              Tensor(DType::int32, {options.samples})};
  const std::array<GlyphRange, 10> ranges = glyph_ranges();
  const std::uint64_t key = key_of(options, k_stream);
  for_each_sample(options, [&](std::int64_t i, std::uint64_t number) {
    split.labels.as<std::int32_t>()[i] = draw_sample(
        ranges, RandomStream(key, number), split.images.as<std::uint8_t>() + i * k_pixels);
  });
  return split;
}

Split moving_digits(const DigitsOptions& options) {
  Split split{Tensor(DType::uint8, {options.samples, k_frames, k_side, k_side, 1}),
              Tensor(DType::int32, {options.samples})};
  const std::array<GlyphRange, 10> ranges = glyph_ranges();
  const std::uint64_t digits = key_of(options, k_clip_stream);
  const std::uint64_t motions = key_of(options, k_motion_stream);
  for_each_sample(options, [&](std::int64_t i, std::uint64_t number) {
    split.labels.as<std::int32_t>()[i] =
        draw_clip(ranges,
                  RandomStream(digits, number),
                  RandomStream(motions, number),
                  split.images.as<std::uint8_t>() + i * k_frames * k_pixels);
  });
  return split;
}

}  // namespace halfstep::data
