// Random augmentation of training images [N,H,W,C], one draw per sample from (seed, stream,
// ordinal, first + index); `first` is the number of samples of the batch that lower ranks have.
//   RandomFlip:        mirrors left-right and upside-down, each with probability one half
//   RandomTranslation: moves down by a uniform share of the height in [height_low, height_high) and
//                      right by one of the width in [width_low, width_high)

#include "graph/ops/image.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include "core/ranges.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

/// By the number of the FillMode.
constexpr std::array<std::string_view, 4> k_fill_modes{"constant", "nearest", "reflect", "wrap"};

void expect_word(const InferContext& c,
                 std::string_view attr,
                 std::span<const std::string_view> words) {
  const std::string& given = c.node.attrs.get<std::string>(attr);
  if (contains(words, given)) return;
  throw ShapeError(fmt::format("{} of {} must not be '{}'", attr, c.node.op, given));
}

Shape checked_images(const InferContext& c) {
  const Shape& x = c.input(0).shape;
  if (x.rank() != 4) {
    throw ShapeError("images must be [batch, height, width, channels], got " + to_string(x));
  }
  if (c.input(1).shape.elements() != 1) {
    throw ShapeError("the ordinal must be one number, got shape " + to_string(c.input(1).shape));
  }
  return x;
}

std::vector<Shape> infer_flip(const InferContext& c) {
  constexpr std::array<std::string_view, 3> k_modes{
      "horizontal", "vertical", "horizontal_and_vertical"};
  expect_word(c, "mode", k_modes);
  return {checked_images(c)};
}

std::vector<Shape> infer_translation(const InferContext& c) {
  constexpr std::array<std::string_view, 2> k_interpolations{"nearest", "bilinear"};
  expect_word(c, "fill_mode", k_fill_modes);
  expect_word(c, "interpolation", k_interpolations);
  const Attrs& attrs = c.node.attrs;
  if (attrs.get<double>("height_low") > attrs.get<double>("height_high") ||
      attrs.get<double>("width_low") > attrs.get<double>("width_high")) {
    throw ShapeError("the low end of a translation is above the high end");
  }
  return {checked_images(c)};
}

/// A flip is its own inverse, and the same ordinal draws the same flips.
std::vector<Value> gradient_flip(const GradientContext& c) {
  return {c.b.add("RandomFlip", {c.dy[0], c.input(1)}, c.node.attrs), Value{}};
}

}  // namespace

ImageDraw::ImageDraw(const Attrs& attrs)
    : seed(static_cast<std::uint64_t>(attrs.get<std::int64_t>("seed"))),
      stream(static_cast<std::uint64_t>(attrs.get<std::int64_t>("stream"))),
      first(attrs.get<std::int64_t>("first")) {}

ImageFlip::ImageFlip(const Attrs& attrs)
    : draw(attrs),
      vertical(attrs.get<std::string>("mode") != "horizontal"),
      horizontal(attrs.get<std::string>("mode") != "vertical") {}

ImageTranslation::ImageTranslation(const Attrs& attrs)
    : draw(attrs),
      height_low(static_cast<float>(attrs.get<double>("height_low"))),
      height_high(static_cast<float>(attrs.get<double>("height_high"))),
      width_low(static_cast<float>(attrs.get<double>("width_low"))),
      width_high(static_cast<float>(attrs.get<double>("width_high"))),
      fill_value(static_cast<float>(attrs.get<double>("fill_value"))),
      fill(static_cast<FillMode>(
          std::ranges::find(k_fill_modes, attrs.get<std::string>("fill_mode")) -
          k_fill_modes.begin())),
      bilinear(attrs.get<std::string>("interpolation") == "bilinear") {}

std::vector<OpDef> image_ops() {
  return {
      define("RandomFlip",
             "images: T, ordinal: int64 -> output: T",
             "T: {uint8, half, bfloat16, float, double}, mode: string = 'horizontal_and_vertical', "
             "seed: int = 0, stream: int = 0, first: int = 0",
             {.infer = infer_flip, .gradient = gradient_flip}),
      define(
          "RandomTranslation",
          "images: T, ordinal: int64 -> output: T",
          "T: {uint8, half, bfloat16, float, double}, height_low: float, height_high: float, "
          "width_low: float, width_high: float, fill_mode: string = 'reflect', fill_value: float = "
          "0.0, interpolation: string = 'bilinear', seed: int = 0, stream: int = 0, first: int = 0",
          {.infer = infer_translation}),
  };
}

}  // namespace halfstep::graph::ops
