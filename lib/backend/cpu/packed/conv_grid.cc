#include "backend/cpu/packed/conv_grid.h"

#include <fmt/format.h>

#include <cstring>

#include "backend/cpu/packed/conv.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::packed {
namespace {

/// The operand that a convolution or a gradient computes.
enum class ConvResult { y, x, w };

ConvResult result_of(const NodeView& node) {
  if (node.node.is(graph::ops::k_conv2d_backprop_input)) return ConvResult::x;
  return node.node.is(graph::ops::k_conv2d_backprop_filter) ? ConvResult::w : ConvResult::y;
}

}  // namespace

ConvGeometry conv_geometry_of(const NodeView& node) {
  const ConvResult result = result_of(node);
  return graph::ops::conv_geometry(
      node.attrs(),
      result == ConvResult::x ? node.output().shape : node.input(0).shape,
      result == ConvResult::w ? node.output().shape : node.input(1).shape);
}

I64 partial_products_of(const NodeView& node) {
  return node.output().dtype == DType::float16 ? node.attrs().get<I64>("float16_products") : 1;
}

I64 parts_of_batch(const ConvGeometry& g, int threads) {
  const WindowAxis &h = g.window.height, &w = g.window.width;
  const double operations =
      2.0 * static_cast<double>(g.batch * h.output * w.output * g.outputs * g.inputs) *
      static_cast<double>(h.size * w.size);
  return std::clamp<I64>(
      static_cast<I64>(operations / (1 << 20)), 1, std::min<I64>(threads, g.batch));
}

I64 pixels_read(const WindowAxis& a) {
  return std::clamp<I64>((a.output - 1) * a.stride + a.extent() - a.pad_before, 0, a.input);
}

bool is_read(const WindowAxis& a, I64 i) {
  for (I64 k = 0; k < a.size; ++k) {
    const I64 distance = i + a.pad_before - k * a.dilation;
    if (distance >= 0 && distance % a.stride == 0 && distance / a.stride < a.output) return true;
  }
  return false;
}

void ConvGrid::for_each_run(FunctionRef<void(const Run&)> visit) const {
  for (I64 i = 0; i < h.read; ++i) {
    if (std::ranges::binary_search(h.unread, i)) continue;
    const auto run_at = [&](I64 j) {
      return Run{.residue = (i + h.before) % h.stride * w.stride + (j + w.before) % w.stride,
                 .cell = (i + h.before) / h.stride * w.cells + (j + w.before) / w.stride,
                 .pixel = i * w.input + j};
    };
    for (I64 j = 0; j < std::min(w.stride, w.read); ++j) {
      Run run = run_at(j);
      run.pixels = divide_up(w.read - j, w.stride);
      visit(run);
    }
    for (const I64 j : w.unread) {
      Run run = run_at(j);
      run.pixel = -1;
      visit(run);
    }
  }
}

void ConvGrid::copy_image(const ConvMicroKernels& kernels,
                          std::byte* grid,
                          const std::byte* image) const {
  const I64 pixel = channels * k_value_bytes;
  for_each_run([&](const Run& run) {
    std::byte* to = grid + (run.residue * values() + run.cell * channels) * k_value_bytes;
    if (run.pixel < 0) {
      for (I64 plane = 0; plane < planes; ++plane) {
        std::memset(to + plane * plane_bytes(), 0, static_cast<std::size_t>(pixel));
      }
      return;
    }
    kernels.copy_pixels[planes - 1]({.to = to,
                                     .low_plane = plane_bytes(),
                                     .from = image + run.pixel * pixel,
                                     .from_stride = w.stride * pixel,
                                     .pixels = run.pixels,
                                     .channels = channels});
  });
}

namespace {

constexpr std::int64_t k_max_grid_bytes = 1 << 20;  // stays in the second-level cache

/// Limit on the positions that the gradient of x computes per position of y. For windows that reach
/// far beyond y, such as 7 x 7 over an image of 7 x 7, most multiplications are by zeros.
constexpr std::int64_t k_max_positions_per_output = 4;
/// Minimum positions of an image that the gradient of the filter reduces; a k block holds 32.
constexpr std::int64_t k_min_summed_positions = 4;

/// The positions of an axis that the gradient of x computes, and the cells of y's grid under them.
std::int64_t positions_of_x(const WindowAxis& a) { return divide_up(a.input, a.stride); }
std::int64_t cells_under_x(const WindowAxis& a) {
  return positions_of_x(a) + divide_up(a.extent() - 1, a.stride);
}

}  // namespace

bool reads_input(const WindowAxis& axis, std::int64_t k) {
  const std::int64_t shift = k * axis.dilation - axis.pad_before;
  const std::int64_t first = shift >= 0 ? 0 : divide_up(-shift, axis.stride);
  return first < axis.output && first * axis.stride + shift < axis.input;
}

Accepts accepts_conv(const NodeView& node) {
  const DType dtype = node.output().dtype;
  if (!is_half(dtype)) return Accepts::no("not a 16-bit dtype");
  const ConvResult result = result_of(node);
  const graph::ops::ConvGeometry g = conv_geometry_of(node);
  if (g.groups > 1) return Accepts::no("groups");
  if (g.x_shape().elements() == 0 || g.y_shape().elements() == 0 || g.inputs == 0 ||
      g.window.height.size * g.window.width.size == 0) {
    return Accepts::no("empty");
  }
  const std::int64_t x =
      (g.window.height.input + g.window.height.pad_before + g.window.height.pad_after) *
      (g.window.width.input + g.window.width.pad_before + g.window.width.pad_after);
  const std::int64_t y = g.window.height.output * g.window.width.output;
  const std::int64_t under_x = cells_under_x(g.window.height) * cells_under_x(g.window.width);
  if (std::max(x * g.inputs, (result == ConvResult::x ? under_x : y) * g.outputs) * k_value_bytes >
      k_max_grid_bytes) {
    return Accepts::no("an image larger than the second-level cache");
  }
  if (result == ConvResult::x && positions_of_x(g.window.height) * positions_of_x(g.window.width) >
                                     k_max_positions_per_output * y) {
    return Accepts::no("windows that reach far beyond y");
  }
  if (result == ConvResult::w && y < k_min_summed_positions) {
    return Accepts::no(fmt::format("sums of {} positions an image", y));
  }
  // Offsets into images and filters are 32-bit integers.
  if (g.window.height.size * g.window.width.size * g.inputs * g.outputs >
      (std::int64_t{1} << 31) - 1) {
    return Accepts::no("a filter of more than 2^31 values");
  }
  return Accepts::yes();
}

}  // namespace halfstep::backend::cpu::packed
