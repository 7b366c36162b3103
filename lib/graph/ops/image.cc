// Random augmentation of training images [N,H,W,C], one draw per sample from (seed, stream,
// ordinal, first + index); `first` is the number of samples of the batch that lower ranks have.
//   RandomFlip:        mirrors left-right and upside-down, each with probability one half
//   RandomTranslation: moves down by a uniform share of the height in [height_low, height_high) and
//                      right by one of the width in [width_low, width_high)

#include <fmt/core.h>

#include <initializer_list>

#include "core/ranges.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

void expect_word(const InferContext& c,
                 std::string_view attr,
                 std::initializer_list<std::string_view> words) {
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
  expect_word(c, "mode", {"horizontal", "vertical", "horizontal_and_vertical"});
  return {checked_images(c)};
}

std::vector<Shape> infer_translation(const InferContext& c) {
  expect_word(c, "fill_mode", {"constant", "nearest", "reflect", "wrap"});
  expect_word(c, "interpolation", {"nearest", "bilinear"});
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
