#include "nn/layers/image.h"

#include <fmt/format.h>

#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

constexpr std::array k_data_formats{
    config::Named{DataFormatField::Value::channels_last, "channels_last"},
    config::Named{DataFormatField::Value::channels_first, "channels_first"},
};

}  // namespace

std::string to_tensorflow(Padding padding) { return padding == Padding::same ? "SAME" : "VALID"; }

std::vector<std::int64_t> over_image(const config::Pair& pair) { return {1, pair[0], pair[1], 1}; }

void DataFormatField::field(config::Fields& f) {
  f.choice("data_format",
           value,
           k_data_formats,
           {.doc = "Order of the axes of an image; channels_last is the one there is."});
}

void DataFormatField::check(Diagnostics& diagnostics, const Where& where) const {
  if (value == Value::channels_first) {
    diagnostics.error(where,
                      "data_format channels_first is not supported",
                      "images are channels_last: [height, width, channels]");
  }
}

namespace {

Shape shape_of_rank(const LayerContext& c,
                    graph::Value x,
                    std::size_t rank,
                    std::string_view wanted) {
  const Shape shape = c.b.shape(x);
  if (shape.rank() != rank) {
    const std::span<const std::int64_t> sample =
        shape.rank() == 0 ? shape.dims() : shape.dims().subspan(1);
    c.fail(fmt::format("needs {}, got samples [{}]", wanted, fmt::join(sample, ", ")));
  }
  return shape;
}

}  // namespace

Shape image_shape(const LayerContext& c, graph::Value x) {
  return shape_of_rank(c, x, 4, "images [height, width, channels]");
}

Shape volume_shape(const LayerContext& c, graph::Value x) {
  return shape_of_rank(c, x, 5, "volumes [depth, height, width, channels]");
}

Shape sequence_shape(const LayerContext& c, graph::Value x) {
  return shape_of_rank(c, x, 3, "sequences [steps, channels]");
}

graph::Value sequence_as_image(const LayerContext& c, graph::Value x) {
  const Shape in = sequence_shape(c, x);
  return graph::ops::reshape(c.b, x, {in[0], 1, in[1], in[2]});
}

graph::Value image_as_sequence(const LayerContext& c, graph::Value x) {
  const Shape in = c.b.shape(x);
  return graph::ops::reshape(c.b, x, {in[0], in[2], in[3]});
}

graph::Value zero_pad(graph::Builder& b, graph::Value x, std::span<const config::Pair> sides) {
  std::vector<std::int64_t> paddings{0, 0};
  for (const config::Pair& side : sides) paddings.insert(paddings.end(), side.begin(), side.end());
  paddings.insert(paddings.end(), {0, 0});
  return b.add("Pad", {x, b.ints(std::move(paddings))});
}

}  // namespace halfstep::nn
