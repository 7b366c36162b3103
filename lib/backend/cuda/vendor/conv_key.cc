#include "backend/cuda/vendor/conv_key.h"

#include <fmt/format.h>

#include <array>

namespace halfstep::backend::cuda {
namespace {

constexpr std::array<std::string_view, 3> k_kinds{"forward", "input_gradient", "filter_gradient"};

}  // namespace

std::string to_string(const ConvKey& key) {
  const auto& g = key.geometry;
  const auto &h = g.window.height, &w = g.window.width;
  std::string text = fmt::format("{} {}x{}x{}x{} * {}x{}x{}x{} stride {}x{}",
                                 k_kinds[static_cast<std::size_t>(key.kind)],
                                 g.batch,
                                 h.input,
                                 w.input,
                                 g.inputs,
                                 g.outputs,
                                 h.size,
                                 w.size,
                                 g.group_inputs,
                                 h.stride,
                                 w.stride);
  text += fmt::format(" pad {}+{}x{}+{}", h.pad_before, h.pad_after, w.pad_before, w.pad_after);
  if (h.dilation != 1 || w.dilation != 1) {
    text += fmt::format(" dilation {}x{}", h.dilation, w.dilation);
  }
  if (key.bias) text += key.relu ? " bias relu" : " bias";
  text += fmt::format(" {}", halfstep::name(key.dtype));
  if (key.dtype == DType::float32) text += key.float32 == Float32Math::tf32 ? " tf32" : " ieee";
  if (!key.deterministic) text += " any order";
  return text;
}

}  // namespace halfstep::backend::cuda
