// Direct convolution and its two gradients, plain and depthwise, over the taps inside the image.
// Multiplied and accumulated in double (int64 for int32), rounded once on store. Depthwise is the
// case of one group per channel, whose filter has the same memory layout. Bit-identical for every
// number of threads.

#include <algorithm>
#include <array>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "graph/op_handles.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu {
namespace {

using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;
using GeometryRule = ConvGeometry (*)(const graph::Attrs&, const Shape&, const Shape&);

/// Output channels that are accumulated together.
constexpr std::int64_t k_lanes = 64;

/// Rows per part, so that a part outweighs the cost of waking a thread.
std::int64_t grain(std::int64_t multiplications_per_row) {
  return rows_per_part(20'000, multiplications_per_row);
}

/// Calls body(row, column, tap) for every tap of the window at output (i, j) that reads a pixel
/// inside the image; `tap` is the row-major index of the tap.
template <class F>
void for_each_tap(const ConvGeometry& g, std::int64_t i, std::int64_t j, F&& body) {
  const WindowAxis &h = g.window.height, &w = g.window.width;
  for (std::int64_t kh = 0; kh < h.size; ++kh) {
    const std::int64_t row = h.cell(i, kh);
    if (!h.inside(row)) continue;
    for (std::int64_t kw = 0; kw < w.size; ++kw) {
      const std::int64_t column = w.cell(j, kw);
      if (w.inside(column)) body(row, column, kh * w.size + kw);
    }
  }
}

/// The output whose tap `k` reads input index `i`, or -1.
std::int64_t output_under(const WindowAxis& axis, std::int64_t i, std::int64_t k) {
  const std::int64_t scaled = i + axis.pad_before - k * axis.dilation;
  if (scaled < 0 || scaled % axis.stride != 0) return -1;
  return scaled / axis.stride < axis.output ? scaled / axis.stride : -1;
}

template <class T>
void forward(const ConvGeometry& g, const T* x, const T* filter, const T* bias, T* y) {
  const WindowAxis &h = g.window.height, &w = g.window.width;
  const std::int64_t row_multiplications = w.output * g.outputs * h.size * w.size * g.group_inputs;
  const auto pixel = [&](std::int64_t n, std::int64_t i, std::int64_t j) {
    T* out = y + ((n * h.output + i) * w.output + j) * g.outputs;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      for (std::int64_t first = 0; first < g.group_outputs; first += k_lanes) {
        const std::int64_t lanes = std::min(k_lanes, g.group_outputs - first);
        const std::int64_t o = group * g.group_outputs + first;
        std::array<Sum<T>, k_lanes> sum;
        for (std::int64_t l = 0; l < lanes; ++l) {
          sum[static_cast<std::size_t>(l)] = bias == nullptr ? Sum<T>{0} : load_sum(bias[o + l]);
        }
        for_each_tap(g, i, j, [&](std::int64_t row, std::int64_t column, std::int64_t tap) {
          const T* cell =
              x + ((n * h.input + row) * w.input + column) * g.inputs + group * g.group_inputs;
          const T* weights = filter + tap * g.group_inputs * g.outputs + o;
          for (std::int64_t c = 0; c < g.group_inputs; ++c) {
            const Sum<T> value = load_sum(cell[c]);
            for (std::int64_t l = 0; l < lanes; ++l) {
              sum[static_cast<std::size_t>(l)] += value * load_sum(weights[c * g.outputs + l]);
            }
          }
        });
        for (std::int64_t l = 0; l < lanes; ++l) {
          out[o + l] = store<T>(sum[static_cast<std::size_t>(l)]);
        }
      }
    }
  };
  parallel_for_each(g.batch * h.output, grain(row_multiplications), [&](std::int64_t row) {
    for (std::int64_t j = 0; j < w.output; ++j) pixel(row / h.output, row % h.output, j);
  });
}

template <class T>
void input_gradient(const ConvGeometry& g, const T* filter, const T* dy, T* dx) {
  const WindowAxis &h = g.window.height, &w = g.window.width;
  const std::int64_t row_multiplications = w.input * g.inputs * h.size * w.size * g.group_outputs;
  const auto element = [&](std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t c) {
    const std::int64_t group = c / g.group_inputs;
    const std::int64_t o = group * g.group_outputs;
    Sum<T> sum{0};
    for (std::int64_t kh = 0; kh < h.size; ++kh) {
      const std::int64_t i = output_under(h, row, kh);
      if (i < 0) continue;
      for (std::int64_t kw = 0; kw < w.size; ++kw) {
        const std::int64_t j = output_under(w, column, kw);
        if (j < 0) continue;
        const T* d = dy + ((n * h.output + i) * w.output + j) * g.outputs + o;
        const T* weights =
            filter + ((kh * w.size + kw) * g.group_inputs + c % g.group_inputs) * g.outputs + o;
        for (std::int64_t l = 0; l < g.group_outputs; ++l)
          sum += load_sum(d[l]) * load_sum(weights[l]);
      }
    }
    return store<T>(sum);
  };
  parallel_for(
      g.batch * h.input, grain(row_multiplications), [&](std::int64_t begin, std::int64_t end) {
        T* out = dx + begin * w.input * g.inputs;
        for (std::int64_t row = begin; row < end; ++row) {
          for (std::int64_t column = 0; column < w.input; ++column) {
            for (std::int64_t c = 0; c < g.inputs; ++c) {
              *out++ = element(row / h.input, row % h.input, column, c);
            }
          }
        }
      });
}

template <class T>
void filter_gradient(const ConvGeometry& g, const T* x, const T* dy, T* df) {
  const WindowAxis &h = g.window.height, &w = g.window.width;
  // One row of the filter: position (kh, kw) and input channel c of each group, all outputs.
  const auto weights = [&](std::int64_t kh, std::int64_t kw, std::int64_t c, T* out) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      for (std::int64_t first = 0; first < g.group_outputs; first += k_lanes) {
        const std::int64_t lanes = std::min(k_lanes, g.group_outputs - first);
        const std::int64_t o = group * g.group_outputs + first;
        std::array<Sum<T>, k_lanes> sum;
        std::fill_n(sum.begin(), lanes, Sum<T>{0});
        for (std::int64_t row = 0; row < g.batch * h.output; ++row) {
          const std::int64_t cell_row = h.cell(row % h.output, kh);
          if (!h.inside(cell_row)) continue;
          const T* line = x + (row / h.output * h.input + cell_row) * w.input * g.inputs;
          for (std::int64_t j = 0; j < w.output; ++j) {
            const std::int64_t column = w.cell(j, kw);
            if (!w.inside(column)) continue;
            const Sum<T> value = load_sum(line[column * g.inputs + group * g.group_inputs + c]);
            const T* d = dy + (row * w.output + j) * g.outputs + o;
            for (std::int64_t l = 0; l < lanes; ++l) {
              sum[static_cast<std::size_t>(l)] += value * load_sum(d[l]);
            }
          }
        }
        for (std::int64_t l = 0; l < lanes; ++l) {
          out[o + l] = store<T>(sum[static_cast<std::size_t>(l)]);
        }
      }
    }
  };
  const std::int64_t row_multiplications = g.batch * h.output * w.output * g.outputs;
  parallel_for_each(
      h.size * w.size * g.group_inputs, grain(row_multiplications), [&](std::int64_t row) {
        const std::int64_t tap = row / g.group_inputs;
        weights(tap / w.size, tap % w.size, row % g.group_inputs, df + row * g.outputs);
      });
}

/// Calls f with the storage type of a dtype that convolution supports.
template <class F>
Prepared dispatch_conv(DType dtype, F&& f) {
  if (dtype == DType::int32) return f(Type<std::int32_t>{});
  return dispatch_floating(dtype, f);
}

template <GeometryRule geometry>
Prepared prepare_forward(const NodeView& node, const Capabilities&) {
  const ConvGeometry g = geometry(node.attrs(), node.input(0).shape, node.input(1).shape);
  const bool relu = node.node.is(graph::ops::k_conv2d_bias_relu);
  return dispatch_conv(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([g, relu](const Args& a) {
      const T* bias = a.in.size() > 2 ? a.in[2].as<T>() : nullptr;
      T* y = a.out[0].as<T>();
      forward<T>(g, a.in[0].as<T>(), a.in[1].as<T>(), bias, y);
      // Exact after rounding, which keeps the sign.
      for (std::int64_t i = 0; relu && i < a.out[0].elements(); ++i) {
        if (load_sum(y[i]) < 0) y[i] = T{};
      }
    });
  });
}

template <GeometryRule geometry>
Prepared prepare_input_gradient(const NodeView& node, const Capabilities&) {
  const ConvGeometry g = geometry(node.attrs(), node.output().shape, node.input(1).shape);
  return dispatch_conv(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([g](const Args& a) {
      input_gradient<T>(g, a.in[1].as<T>(), a.in[2].as<T>(), a.out[0].as<T>());
    });
  });
}

template <GeometryRule geometry>
Prepared prepare_filter_gradient(const NodeView& node, const Capabilities&) {
  const ConvGeometry g = geometry(node.attrs(), node.input(0).shape, node.output().shape);
  return dispatch_conv(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([g](const Args& a) {
      filter_gradient<T>(g, a.in[0].as<T>(), a.in[2].as<T>(), a.out[0].as<T>());
    });
  });
}

}  // namespace

std::vector<Kernel> conv_kernels() {
  constexpr GeometryRule k_plain = graph::ops::conv_geometry;
  constexpr GeometryRule k_depthwise = graph::ops::depthwise_geometry;
  return {
      {"Conv2D", "reference/conv2d", executable, prepare_forward<k_plain>},
      {"Conv2DBias", "reference/conv2d_bias", executable, prepare_forward<k_plain>},
      {"Conv2DBiasRelu", "reference/conv2d_bias_relu", executable, prepare_forward<k_plain>},
      {"Conv2DBackpropInput",
       "reference/conv2d_backprop_input",
       executable,
       prepare_input_gradient<k_plain>},
      {"Conv2DBackpropFilter",
       "reference/conv2d_backprop_filter",
       executable,
       prepare_filter_gradient<k_plain>},
      {"DepthwiseConv2dNative",
       "reference/depthwise_conv2d_native",
       executable,
       prepare_forward<k_depthwise>},
      {"DepthwiseConv2dNativeBackpropInput",
       "reference/depthwise_conv2d_native_backprop_input",
       executable,
       prepare_input_gradient<k_depthwise>},
      {"DepthwiseConv2dNativeBackpropFilter",
       "reference/depthwise_conv2d_native_backprop_filter",
       executable,
       prepare_filter_gradient<k_depthwise>},
  };
}

}  // namespace halfstep::backend::cpu
