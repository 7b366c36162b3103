#include "nn/layers/random_fields.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// y = x * scale + offset.
struct Rescaling {
  static constexpr MaskUse k_masks = MaskUse::passed;
  double scale = 1;
  double offset = 0;

  void fields(config::Fields& f) {
    f.field("scale", scale, {.doc = "Factor of each element.", .required = true});
    f.field("offset", offset, {.doc = "Added to the product."});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const DType dtype = c.compute();
    const Value scaled = c.b.add("Mul", {c.b.cast(x[0], dtype), c.b.scalar(dtype, scale)});
    return c.b.add("AddV2", {scaled, c.b.scalar(dtype, offset)});
  }
};

enum class FlipMode { horizontal, vertical, horizontal_and_vertical };
constexpr std::array k_flip_modes{
    config::Named{FlipMode::horizontal, "horizontal"},
    config::Named{FlipMode::vertical, "vertical"},
    config::Named{FlipMode::horizontal_and_vertical, "horizontal_and_vertical"},
};

/// Base of the layers that are one op in training and the identity otherwise.
struct RandomImageOp : RandomImages {
  Value apply(LayerContext& c, std::string_view op, Value x, graph::Attrs attrs) const {
    image_shape(c, x);
    if (!c.training) return x;
    attrs.set("seed", draws.key(c));
    attrs.set("stream", c.stream());
    attrs.set("first", c.first_sample);
    return c.b.add(op, {x, c.ordinal}, std::move(attrs));
  }
};

struct RandomFlip : RandomImageOp {
  FlipMode mode = FlipMode::horizontal_and_vertical;

  void fields(config::Fields& f) {
    f.choice("mode",
             mode,
             k_flip_modes,
             {.doc = "Directions of the flips: left to right, top to bottom, or both."});
    common_fields(f);
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    return apply(
        c, "RandomFlip", x[0], {{"mode", std::string(config::name_of(mode, k_flip_modes))}});
  }
};

/// Factors are shares of the height and width: f means [-f, f], or [low, high].
struct RandomTranslation : RandomImageOp {
  config::Node written_height;
  config::Node written_width;
  Resampling resampling;
  std::vector<double> height{0, 0};
  std::vector<double> width{0, 0};

  void fields(config::Fields& f) {
    constexpr std::string_view k_share =
        "Largest translation as a fraction of the extent, f for [-f, f], or [low, high] within "
        "[-1, 1]; "
        "positive is down or right.";
    f.field("height_factor", written_height, {.doc = k_share, .required = true});
    f.field("width_factor", written_width, {.doc = k_share, .required = true});
    resampling.fields(f);
    common_fields(f);
  }

  void check(Diagnostics& diagnostics, const Where&) {
    read_range(written_height, height, diagnostics);
    read_range(written_width, width, diagnostics);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const auto& [fill_mode, interpolation, fill_value] = resampling;
    return apply(
        c,
        "RandomTranslation",
        x[0],
        {{"height_low", height[0]},
         {"height_high", height[1]},
         {"width_low", width[0]},
         {"width_high", width[1]},
         {"fill_mode", std::string(config::name_of(fill_mode, k_fill_modes))},
         {"fill_value", fill_value},
         {"interpolation", std::string(config::name_of(interpolation, k_interpolations))}});
  }
};

constexpr std::string_view k_images = "x [batch, height, width, channels], y as x";
constexpr std::string_view k_image_draws =
    "The draws follow from (seed, layer name, batch, sample): they are the same under every "
    "policy.";

}  // namespace

extern const LayerDefs k_preprocessing_layers{
    layer_def<RandomFlip>(
        "random_flip",
        "Flips each image at random in training; otherwise y = x.",
        {.example_input = "[4, 4, 2]", .shapes = k_images, .numerics = k_image_draws}),
    layer_def<RandomTranslation>("random_translation",
                                 "Translates each image by a random fraction of its height and "
                                 "width in training; otherwise y = x.",
                                 {.example = "{height_factor: 0.2, width_factor: [-0.1, 0.3]}",
                                  .example_input = "[4, 4, 2]",
                                  .shapes = k_images,
                                  .numerics = k_image_draws}),
    layer_def<Rescaling>(
        "rescaling", "y = scale x + offset, in the compute dtype.", {.example = "{scale: 1/255}"}),
};

}  // namespace halfstep::nn
