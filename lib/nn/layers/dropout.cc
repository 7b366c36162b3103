#include <fmt/format.h>

#include <cmath>

#include "nn/layers/image.h"
#include "nn/layers/random_elements.h"

namespace halfstep::nn {
namespace {

using graph::Value;

constexpr std::string_view k_rate = "Probability with which an element is zeroed. [fraction]";

/// Source: Srivastava et al. 2014.
struct Dropout : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::vector<std::int64_t> noise_shape;

  void fields(config::Fields& f) {
    rate_field(f, k_rate);
    f.field("noise_shape",
            noise_shape,
            {.doc = "Shape of the mask with the batch first: 1 shares the draw along an axis, -1 "
                    "takes the extent of the input; []: the shape of the input.",
             .min = -1});
    seed_field(f);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const bool shared = !noise_shape.empty() && noise_shape[0] == 1;
    return drop(c, x[0], mask_shape(c, c.b.shape(x[0])), shared);
  }

 private:
  Shape mask_shape(const LayerContext& c, const Shape& x) const {
    if (noise_shape.empty()) return x;
    Shape shape = x;
    bool fits = noise_shape.size() == x.rank();
    for (std::size_t i = 0; fits && i < x.rank(); ++i) {
      fits = noise_shape[i] == -1 || noise_shape[i] == 1 || noise_shape[i] == x[i];
      if (noise_shape[i] == 1) shape = shape.with(i, 1);
    }
    if (!fits) {
      c.fail(fmt::format("noise_shape [{}] does not fit inputs of shape {}",
                         fmt::join(noise_shape, ", "),
                         to_string(x)));
    }
    return shape;
  }
};

/// Of images or of sequences. Source: Tompson et al. 2015.
template <bool image>
struct SpatialDropout : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::passed;
  DataFormatField data_format;

  void fields(config::Fields& f) {
    rate_field(f, "Probability with which a channel is zeroed. [fraction]");
    seed_field(f);
    if (image) data_format.field(f);
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    Shape shape = image ? image_shape(c, x[0]) : sequence_shape(c, x[0]);
    for (std::size_t axis = 1; axis + 1 < shape.rank(); ++axis) shape = shape.with(axis, 1);
    return drop(c, x[0], shape);
  }
};

/// a (x or alpha') + b with the a and b that keep mean 0 and variance 1.
/// Source: Klambauer et al. 2017; alpha' = -scale alpha of their SELU.
struct AlphaDropout : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::passed;
  void fields(config::Fields& f) {
    rate_field(f, "Probability with which an element is set to selu's limit. [fraction]");
    seed_field(f);
  }
  void check(Diagnostics& diagnostics, const Where& where) const {
    if (rate == 1) diagnostics.error(where, "rate must be below 1");
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    if (!c.training || rate == 0) return x[0];
    constexpr double k_limit =
        -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717;
    graph::Builder& b = c.b;
    const DType dtype = b.dtype(x[0]);
    const auto number = [&](double value) { return b.scalar(dtype, value); };
    const double a = 1 / std::sqrt((1 - rate) * (1 + rate * k_limit * k_limit));
    const Value keep = b.cast(mask(c, b.shape(x[0])), dtype);
    // a (x keep + limit (1 - keep)) - a limit rate, with the constants of `keep` taken together.
    const Value kept = b.add("Mul", {b.add("Mul", {x[0], number(a)}), keep});
    const Value other = b.add("Mul", {keep, number(-a * k_limit)});
    return b.add("AddV2", {b.add("AddV2", {kept, other}), number(a * k_limit * (1 - rate))});
  }
};

struct GaussianDropout : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::passed;

  void fields(config::Fields& f) {
    rate_field(f, "Rate of a dropout with the same variance, rate / (1 - rate). [fraction]");
    seed_field(f);
  }
  void check(Diagnostics& diagnostics, const Where& where) const {
    if (rate == 1) diagnostics.error(where, "rate must be below 1");
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    if (!c.training || rate == 0) return x[0];
    graph::Builder& b = c.b;
    const DType dtype = b.dtype(x[0]);
    const Value noise = normal(c, x[0], std::sqrt(rate / (1 - rate)));
    return b.add("Mul", {x[0], b.add("AddV2", {noise, b.scalar(dtype, 1)})});
  }
};

struct GaussianNoise : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::passed;
  double stddev = 0;

  void fields(config::Fields& f) {
    f.field("stddev",
            stddev,
            {.doc = "Standard deviation of the noise.", .required = true, .min = 0, .max = 1});
    seed_field(f);
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    if (!c.training || stddev == 0) return x[0];
    return c.b.add("AddV2", {x[0], normal(c, x[0], stddev)});
  }
};

constexpr std::string_view k_mask =
    "The mask follows from (seed, layer name, batch): it is the same under every policy.";
constexpr std::string_view k_noise =
    "The noise follows from (seed, layer name, batch, sample): it is the same under every policy, "
    "up to its rounding to the compute dtype, and on any number of ranks. Normal numbers are "
    "computed in float32 from uniform ones of 24 bits, so none is further than 5.42 standard "
    "deviations from the mean.";

}  // namespace

extern const LayerDefs k_dropout_layers{
    layer_def<AlphaDropout>("alpha_dropout",
                            "Dropout for networks of selu: in training elements become selu's "
                            "limit -1.758 with probability `rate`, and all are scaled and moved to "
                            "the mean and variance of before (Klambauer et al. 2017).",
                            {.example = "{rate: 0.5}", .numerics = k_mask}),
    layer_def<Dropout>("dropout",
                       "In training zeroes elements with probability `rate` and multiplies the "
                       "rest by 1 / (1 - rate); otherwise y = x (Srivastava et al. 2014).",
                       {.example = "{rate: 0.5}", .numerics = k_mask}),
    layer_def<GaussianDropout>("gaussian_dropout",
                               "In training y = x (1 + n), n from the normal distribution of mean "
                               "0 and standard deviation "
                               "sqrt(rate / (1 - rate)); otherwise y = x (Srivastava et al. 2014).",
                               {.example = "{rate: 0.5}", .numerics = k_noise}),
    layer_def<GaussianNoise>("gaussian_noise",
                             "In training y = x + n, n from the normal distribution of mean 0 and "
                             "standard deviation `stddev`; otherwise y = x.",
                             {.example = "{stddev: 0.1}", .numerics = k_noise}),
    layer_def<SpatialDropout<false>>(
        "spatial_dropout1d",
        "Dropout of whole channels of a sequence: a channel is zero at all its steps, or at none.",
        {.example = "{rate: 0.5}",
         .example_input = "[6, 3]",
         .shapes = "x [batch, steps, channels], y as x",
         .numerics = k_mask}),
    layer_def<SpatialDropout<true>>(
        "spatial_dropout2d",
        "Dropout of whole channels of an image: a channel is zero in all "
        "its pixels, or in none (Tompson et al. 2015).",
        {.example = "{rate: 0.5}",
         .example_input = "[4, 6, 3]",
         .shapes = "x [batch, height, width, channels], y as x",
         .numerics = k_mask}),
};

}  // namespace halfstep::nn
