// Layers that change each training image at random, built of ops that every backend has. The draws
// of a sample follow from (run seed, layer, batch ordinal, number of the sample in the batch).

#include <fmt/core.h>

#include <initializer_list>
#include <numbers>
#include <utility>

#include "graph/ops/ops.h"
#include "nn/layers/random_fields.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

/// Base of the layers: whole numbers drawn for each sample.
struct RandomPixels : RandomImages {
  /// A uniform number from 0 to count - 1 per sample, int32 [batch, 1, 1, 1]; `which` distinguishes
  /// several.
  Value drawn(LayerContext& c, std::int64_t batch, int which, std::int64_t count) const {
    Builder& b = c.b;
    RandomElements one = draws;
    one.which = which;
    const auto number = [&](std::int64_t n) {
      return b.scalar(DType::float32, static_cast<double>(n));
    };
    const Value scaled = b.add("Mul", {one.uniform(c, {batch, 1, 1, 1}), number(count)});
    // The scaled number may round up to count.
    const Value floor = b.add("Minimum", {b.add("Floor", {scaled}), number(count - 1)});
    return b.cast(floor, DType::int32);
  }

  /// 0, step, 2 step, ... along one of four axes, int32.
  static Value counted(Builder& b, std::size_t axis, std::int64_t count, std::int64_t step = 1) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) * step;
    return graph::ops::reshape(b, b.ints(values), Shape{1, 1, 1, 1}.with(axis, count));
  }
};

/// The pixels of images at int32 rows and columns within them, which broadcast to [batch, height',
/// width', 1]: rows of the matrix of all pixels.
Value taken(Builder& b, Value x, Value row, Value column) {
  const Shape in = b.shape(x);
  const Value pitch = b.scalar(DType::int32, static_cast<double>(in[2]));
  const Value in_image = b.add("AddV2", {b.add("Mul", {row, pitch}), column});
  const Value index = b.add("AddV2", {in_image, RandomPixels::counted(b, 0, in[0], in[1] * in[2])});
  const Shape out = b.shape(index);
  const Value pixels = b.add("GatherV2",
                             {graph::ops::reshape(b, x, {in[0] * in[1] * in[2], in[3]}),
                              graph::ops::reshape(b, index, Shape{out.elements()}),
                              b.scalar(DType::int32, 0)});
  return graph::ops::reshape(b, pixels, {out[0], out[1], out[2], in[3]});
}

struct RandomCrop : RandomPixels {
  std::int64_t height = 0;
  std::int64_t width = 0;

  void fields(config::Fields& f) {
    const auto extent = [&](std::string_view name, std::int64_t& value) {
      f.field(name,
              value,
              {.doc = fmt::format("{} of the output, at most that of the images. [pixels]",
                                  name == "height" ? "Height" : "Width"),
               .required = true,
               .min = 1,
               .max = k_max_window});
    };
    extent("height", height);
    extent("width", width);
    common_fields(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    Builder& b = c.b;
    const Shape in = image_shape(c, x[0]);
    if (height > in[1] || width > in[2]) {
      c.fail(fmt::format(
          "cannot cut {} x {} pixels out of images of {} x {}", height, width, in[1], in[2]));
    }
    const std::int64_t down = in[1] - height, right = in[2] - width;
    if (!c.training || (down == 0 && right == 0)) {
      const std::vector<std::int64_t> begin{0, down / 2, right / 2, 0};
      const std::vector<std::int64_t> size{in[0], height, width, in[3]};
      return b.add("Slice", {x[0], b.ints(begin), b.ints(size)});
    }
    const Value row = b.add("AddV2", {drawn(c, in[0], 0, down + 1), counted(b, 1, height)});
    const Value column = b.add("AddV2", {drawn(c, in[0], 1, right + 1), counted(b, 2, width)});
    return taken(b, x[0], row, column);
  }
};

/// Arithmetic on float32 values.
struct Real {
  Builder* b;
  Value v;

  Real like(double value) const { return {b, b->scalar(DType::float32, value)}; }
  Real of(std::string_view op, Real other) const { return {b, b->add(op, {v, other.v})}; }
  Real of(std::string_view op, double other) const { return of(op, like(other)); }
  Real floor() const { return {b, b->add("Floor", {v})}; }
  friend Real operator+(Real x, Real y) { return x.of("AddV2", y); }
  friend Real operator-(Real x, Real y) { return x.of("Sub", y); }
  friend Real operator*(Real x, Real y) { return x.of("Mul", y); }
  friend Real operator*(double x, Real y) { return y.of("Mul", x); }
  friend Real operator-(double x, Real y) { return y.like(x) - y; }
};

/// Each image turned about its middle; pixels beyond its edges by `fill_mode`.
struct RandomRotation : RandomPixels {
  config::Node factor;
  std::vector<double> turns{0, 0};
  Resampling resampling;

  void fields(config::Fields& f) {
    f.field("factor",
            factor,
            {.doc = "Largest rotation as a fraction of a full turn, f for [-f, f], or [low, high] "
                    "within [-1, 1]; positive is counterclockwise.",
             .required = true});
    resampling.fields(f);
    common_fields(f);
  }

  void check(Diagnostics& diagnostics, const Where&) { read_range(factor, turns, diagnostics); }

  Value build(LayerContext& c, std::span<const Value> x) const {
    Builder& b = c.b;
    const Shape in = image_shape(c, x[0]);
    if (!c.training) return x[0];
    const Real part{&b, draws.uniform(c, {in[0], 1, 1, 1})};
    const Real turn = (turns[1] - turns[0]) * part + part.like(turns[0]);
    const auto [sine, cosine] = sine_and_cosine(2 * std::numbers::pi * turn);
    const auto from_middle = [&](std::size_t axis) {
      const Real cell{&b, b.cast(counted(b, axis, in[axis]), DType::float32)};
      return cell - cell.like(static_cast<double>(in[axis] - 1) / 2);
    };
    const Real down = from_middle(1), right = from_middle(2);
    const auto source = [&](std::size_t axis, Real offset) {
      return offset + offset.like(static_cast<double>(in[axis] - 1) / 2);
    };
    const Real row = source(1, sine * right + cosine * down);
    const Real column = source(2, cosine * right - sine * down);
    if (resampling.interpolation == Interpolation::nearest) {
      return pixel(b, x[0], (row + row.like(0.5)).floor(), (column + row.like(0.5)).floor());
    }
    const Real top = row.floor(), left = column.floor();
    const Real below = row - top, beside = column - left;
    const auto corner = [&](double y, double z, Real weight) {
      const Value value = pixel(b, x[0], top + top.like(y), left + left.like(z));
      return Real{&b, b.cast(value, DType::float32)} * weight;
    };
    const Real sum = corner(0, 0, (1 - below) * (1 - beside)) + corner(0, 1, (1 - below) * beside) +
                     corner(1, 0, below * (1 - beside)) + corner(1, 1, below * beside);
    return b.cast(sum.v, b.dtype(x[0]));
  }

 private:
  /// Taylor polynomials of a quarter of the angle, then the double-angle formulas twice. Errors are
  /// below 1e-6 for angles up to a full turn.
  static std::pair<Real, Real> sine_and_cosine(Real angle) {
    const Real quarter = 0.25 * angle;
    const Real z = quarter * quarter;
    const auto series = [&](std::initializer_list<double> factors) {
      Real sum = z.like(1);
      for (const double factor : factors) sum = 1 - (1 / factor) * (z * sum);
      return sum;
    };
    Real sine = quarter * series({156, 110, 72, 42, 20, 6});
    Real cosine = series({132, 90, 56, 30, 12, 2});
    for (int doubling = 0; doubling < 2; ++doubling) {
      const Real twice = 2 * (sine * cosine);
      cosine = 1 - 2 * (sine * sine);
      sine = twice;
    }
    return {sine, cosine};
  }

  /// The cell of [0, size) that stands for cell `at`.
  Real folded(Real at, std::int64_t size) const {
    const auto cells = static_cast<double>(size);
    const FillMode fill_mode = resampling.fill_mode;
    if (fill_mode == FillMode::wrap || fill_mode == FillMode::reflect) {
      const double period = fill_mode == FillMode::wrap ? cells : 2 * cells;
      at = at - period * at.of("RealDiv", period).floor();
      if (fill_mode == FillMode::reflect) at = at.of("Minimum", 2 * cells - 1 - at);
    }
    return at.of("Maximum", 0).of("Minimum", cells - 1);
  }

  Value pixel(Builder& b, Value x, Real row, Real column) const {
    const Shape in = b.shape(x);
    const Real inside_row = folded(row, in[1]), inside_column = folded(column, in[2]);
    const Value value =
        taken(b, x, b.cast(inside_row.v, DType::int32), b.cast(inside_column.v, DType::int32));
    if (resampling.fill_mode != FillMode::constant) return value;
    const auto same = [&](Real one, Real other) { return b.add("Equal", {one.v, other.v}); };
    const Value inside = b.add("LogicalAnd", {same(row, inside_row), same(column, inside_column)});
    return b.add("SelectV2", {inside, value, b.scalar(b.dtype(x), resampling.fill_value)});
  }
};

/// Source: DeVries and Taylor 2017.
struct Cutout : RandomPixels {
  std::int64_t size = 0;
  double fill_value = 0;

  void fields(config::Fields& f) {
    f.field("size",
            size,
            {.doc = "Edge length of the square. [pixels]",
             .required = true,
             .min = 1,
             .max = k_max_window});
    f.field("fill_value", fill_value, {.doc = "Value of the pixels in the square."});
    common_fields(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    Builder& b = c.b;
    const Shape in = image_shape(c, x[0]);
    if (!c.training) return x[0];
    // The cells of the square along an axis whose middle is drawn.
    const auto within = [&](std::size_t axis) {
      const Value middle = drawn(c, in[0], static_cast<int>(axis) - 1, in[axis]);
      const Value offset = b.add("Sub",
                                 {b.add("AddV2",
                                        {counted(b, axis, in[axis]),
                                         b.scalar(DType::int32, static_cast<double>(size / 2))}),
                                  middle});
      const Value end = b.scalar(DType::int32, static_cast<double>(size));
      return b.add("LogicalAnd",
                   {b.add("GreaterEqual", {offset, b.scalar(DType::int32, 0)}),
                    b.add("Less", {offset, end})});
    };
    const Value square = b.add("LogicalAnd", {within(1), within(2)});
    return b.add("SelectV2", {square, b.scalar(b.dtype(x[0]), fill_value), x[0]});
  }
};

constexpr std::string_view k_draws =
    "The draws follow from (seed, layer name, batch, sample): they are the same under every policy "
    "and number of ranks.";

}  // namespace

extern const LayerDefs k_augmentation_layers{
    layer_def<Cutout>("cutout",
                      "In training, a square around a random pixel of each image has one value "
                      "(DeVries and Taylor 2017); otherwise y = x.",
                      {.example = "{size: 2}",
                       .example_input = "[4, 4, 2]",
                       .shapes = "x [batch, height, width, channels], y as x",
                       .numerics = k_draws}),
    layer_def<RandomCrop>(
        "random_crop",
        "A crop of each image, at a random position in training and at its center otherwise.",
        {.example = "{height: 3, width: 2}",
         .example_input = "[4, 4, 2]",
         .shapes =
             "x [batch, height of x, width of x, channels], y [batch, height, width, channels]",
         .numerics = k_draws}),
    layer_def<RandomRotation>(
        "random_rotation",
        "Rotates each image by a random angle about its center in training; otherwise y = x.",
        {.example = "{factor: 0.1}",
         .example_input = "[4, 4, 2]",
         .shapes = "x [batch, height, width, channels], y as x",
         .numerics = "Angles and weights of pixels are computed in float32. The draws follow from "
                     "(seed, layer name, batch, sample)."}),
};

}  // namespace halfstep::nn
