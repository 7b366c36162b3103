#include "nn/layers/image.h"

#include <fmt/format.h>

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

Shape image_shape(const LayerContext& c, graph::Value x) {
  const Shape shape = c.b.shape(x);
  if (shape.rank() != 4) {
    const std::span<const std::int64_t> sample =
        shape.rank() == 0 ? shape.dims() : shape.dims().subspan(1);
    c.fail(fmt::format("needs images [height, width, channels], got samples [{}]",
                       fmt::join(sample, ", ")));
  }
  return shape;
}

}  // namespace halfstep::nn
