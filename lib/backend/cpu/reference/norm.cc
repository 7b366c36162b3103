// Batch normalization over rows = batch * height * width of x [rows, channels]. Statistics by two
// passes (mean, then squared distances from it) and all arithmetic in double, one rounding on
// store.
//   g = scale / sqrt(v + epsilon), xhat = (x - m) / sqrt(v + epsilon)
//   y = (x - m) * g + offset
//   doffset = sum dy, dscale = sum dy * xhat
//   training:  dx = g * (dy - doffset / rows - xhat * dscale / rows)
//   inference: dx = g * dy
// Fused: a side input is added to the rounded y, the sum is rounded, then ReLU; backward, dy is
// taken as 0 where the rounded y is not above 0. Bit-identical for every number of threads.
//
// Layer normalization of the rows of x [rows, columns], in double as well, with r = 1 / sqrt(v +
// epsilon) and xhat = (x - m) * r per row:
//   y = xhat * gamma + beta, dbeta = sum dy, dgamma = sum dy * xhat over rows
//   dx = r * (dy * gamma - mean(dy * gamma) - xhat * mean(dy * gamma * xhat)), means over the row

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu {
namespace {

/// Channels that are accumulated together.
constexpr std::int64_t k_row_lanes = 16;
using Lanes = std::array<double, k_row_lanes>;

/// Stores element `i` of a vector of any floating dtype.
void set(const TensorView& view, std::int64_t i, double x) {
  dispatch_floating(view.dtype, [&]<class T>(Type<T>) { view.as<T>()[i] = store<T>(x); });
}

struct Norm {
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  double epsilon = 0;
  double factor = 1;
  bool training = true;
  bool side = false;  ///< input 5 is added
  bool relu = false;
};

/// Calls body(first channel, number of channels) for blocks of at most k_row_lanes, in parallel.
template <class F>
void for_each_block(const Norm& p, F&& body) {
  const std::int64_t blocks = (p.channels + k_row_lanes - 1) / k_row_lanes;
  parallel_for_each(blocks, rows_per_part(2'000, p.rows), [&](std::int64_t b) {
    body(b * k_row_lanes, std::min(k_row_lanes, p.channels - b * k_row_lanes));
  });
}

/// Calls body(offset, lane) for every element of the block.
template <class F>
void for_each_element(const Norm& p, std::int64_t first, std::int64_t lanes, F&& body) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      body(row * p.channels + first + l, static_cast<std::size_t>(l));
    }
  }
}

template <class T>
std::pair<Lanes, Lanes> moments(const Norm& p, const T* x, std::int64_t first, std::int64_t lanes) {
  const double rows = static_cast<double>(p.rows);
  Lanes mean{}, variance{};
  for_each_element(
      p, first, lanes, [&](std::int64_t at, std::size_t l) { mean[l] += load_sum(x[at]); });
  for (double& m : mean) m /= rows;
  for_each_element(p, first, lanes, [&](std::int64_t at, std::size_t l) {
    const double distance = load_sum(x[at]) - mean[l];
    variance[l] += distance * distance;
  });
  for (double& v : variance) v /= rows;
  return {mean, variance};
}

template <class T>
void norm_block(const Norm& p, const Args& a, std::int64_t first, std::int64_t lanes) {
  const T* x = a.in[0].as<T>();
  const double rows = static_cast<double>(p.rows);
  Lanes mean{}, variance{};
  if (p.training) std::tie(mean, variance) = moments(p, x, first, lanes);
  Lanes gain{}, offset{};
  for (std::int64_t c = first; c < first + lanes; ++c) {
    const auto l = static_cast<std::size_t>(c - first);
    if (!p.training) {
      mean[l] = element_as_double(a.in[3], c);
      variance[l] = element_as_double(a.in[4], c);
    }
    gain[l] = element_as_double(a.in[1], c) / std::sqrt(variance[l] + p.epsilon);
    offset[l] = element_as_double(a.in[2], c);
    double new_mean = mean[l], new_variance = variance[l];
    if (p.training) {
      new_variance *= rows / std::max(rows - 1, 1.0);
      if (p.factor != 1) {
        new_mean = (1 - p.factor) * element_as_double(a.in[3], c) + p.factor * new_mean;
        new_variance = (1 - p.factor) * element_as_double(a.in[4], c) + p.factor * new_variance;
      }
    }
    if (a.out.size() == 1) continue;
    set(a.out[1], c, new_mean);
    set(a.out[2], c, new_variance);
    set(a.out[3], c, mean[l]);
    set(a.out[4], c, variance[l]);
  }
  T* y = a.out[0].as<T>();
  for_each_element(p, first, lanes, [&](std::int64_t at, std::size_t l) {
    T result = store<T>((load_sum(x[at]) - mean[l]) * gain[l] + offset[l]);
    if (p.side) result = store<T>(load_sum(result) + load_sum(a.in[5].as<T>()[at]));
    y[at] = p.relu && load_sum(result) < 0 ? store<T>(0.0) : result;
  });
}

/// The coefficients of the gradient, of a block of channels.
struct GradientLanes {
  Lanes mean{}, inverse{}, gain{}, offset{}, dscale{}, doffset{};
};

/// `statistics`: the input number of the mean, followed by the variance; `scale` and `offset`: 0 if
/// absent.
GradientLanes gradient_lanes(const Norm& p,
                             const Args& a,
                             std::size_t statistics,
                             std::size_t scale,
                             std::size_t offset,
                             std::int64_t first,
                             std::int64_t lanes) {
  GradientLanes v;
  for (std::int64_t c = first; c < first + lanes; ++c) {
    const auto l = static_cast<std::size_t>(c - first);
    v.mean[l] = element_as_double(a.in[statistics], c);
    v.inverse[l] = 1 / std::sqrt(element_as_double(a.in[statistics + 1], c) + p.epsilon);
    if (scale > 0) v.gain[l] = element_as_double(a.in[scale], c) * v.inverse[l];
    if (p.relu) v.offset[l] = element_as_double(a.in[offset], c);
  }
  return v;
}

/// dy, masked by the ReLU if there is one.
template <class T>
double gradient_of_y(
    const Norm& p, const Args& a, const GradientLanes& v, std::int64_t at, std::size_t l) {
  const double x = load_sum(a.in[1].as<T>()[at]);
  const bool passes = !p.relu || load_sum(store<T>((x - v.mean[l]) * v.gain[l] + v.offset[l])) > 0;
  return passes ? static_cast<double>(load_sum(a.in[0].as<T>()[at])) : 0.0;
}

/// Accumulates dscale and doffset; stores them in outputs `out` and `out` + 1.
template <class T>
void sum_gradients(const Norm& p,
                   const Args& a,
                   GradientLanes& v,
                   std::size_t out,
                   std::int64_t first,
                   std::int64_t lanes) {
  const T* x = a.in[1].as<T>();
  for_each_element(p, first, lanes, [&](std::int64_t at, std::size_t l) {
    const double dy = gradient_of_y<T>(p, a, v, at, l);
    v.doffset[l] += dy;
    v.dscale[l] += dy * (load_sum(x[at]) - v.mean[l]) * v.inverse[l];
  });
  for (std::int64_t c = first; c < first + lanes; ++c) {
    set(a.out[out], c, v.dscale[static_cast<std::size_t>(c - first)]);
    set(a.out[out + 1], c, v.doffset[static_cast<std::size_t>(c - first)]);
  }
}

/// Stores dx; `share` is 1 / rows if x was normalized by batch statistics, else 0.
template <class T>
void store_gradient(const Norm& p,
                    const Args& a,
                    const GradientLanes& v,
                    double share,
                    std::int64_t first,
                    std::int64_t lanes) {
  const T* x = a.in[1].as<T>();
  T* dx = a.out[0].as<T>();
  for_each_element(p, first, lanes, [&](std::int64_t at, std::size_t l) {
    const double xhat = (load_sum(x[at]) - v.mean[l]) * v.inverse[l];
    const double through = share > 0 ? (v.doffset[l] + xhat * v.dscale[l]) * share : 0;
    dx[at] = store<T>(v.gain[l] * (gradient_of_y<T>(p, a, v, at, l) - through));
  });
}

template <class T>
void norm_grad_block(const Norm& p, const Args& a, std::int64_t first, std::int64_t lanes) {
  GradientLanes v = gradient_lanes(p, a, p.relu ? 4 : 3, 2, 3, first, lanes);
  sum_gradients<T>(p, a, v, 1, first, lanes);
  store_gradient<T>(p, a, v, p.training ? 1 / static_cast<double>(p.rows) : 0, first, lanes);
}

Norm norm_of(const NodeView& node, const Shape& x) {
  return {.rows = x.elements() / x.back(),
          .channels = x.back(),
          .epsilon = node.attrs().get_or<double>("epsilon", 0),
          .factor = node.attrs().get_or<double>("exponential_avg_factor", 1.0),
          .training = node.attrs().get_or<bool>("is_training", false),
          .side = node.attrs().get_or<std::int64_t>("num_side_inputs", 0) > 0,
          .relu = node.node.is(graph::ops::k_batch_norm_relu_grad) ||
                  node.attrs().get_or<std::int64_t>("num_relu_inputs", 0) > 0 ||
                  node.attrs().get_or<std::string>("activation_mode", "Identity") == "Relu"};
}

Prepared prepare_norm(const NodeView& node, const Capabilities&) {
  const Norm p = norm_of(node, node.input(0).shape);
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) {
      for_each_block(
          p, [&](std::int64_t first, std::int64_t lanes) { norm_block<T>(p, a, first, lanes); });
      if (a.out.size() > 5) set(a.out[5], 0, 0);
    });
  });
}

Prepared prepare_moments(const NodeView& node, const Capabilities&) {
  const Norm p = norm_of(node, node.input(0).shape);
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) {
      for_each_block(p, [&](std::int64_t first, std::int64_t lanes) {
        const auto [mean, variance] = moments(p, a.in[0].as<T>(), first, lanes);
        for (std::int64_t l = 0; l < lanes; ++l) {
          set(a.out[0], first + l, mean[static_cast<std::size_t>(l)]);
          set(a.out[1], first + l, variance[static_cast<std::size_t>(l)]);
        }
      });
    });
  });
}

Prepared prepare_norm_grad(const NodeView& node, const Capabilities&) {
  const Norm p = norm_of(node, node.input(1).shape);
  return dispatch_floating(node.input(1).dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) {
      for_each_block(p, [&](std::int64_t first, std::int64_t lanes) {
        norm_grad_block<T>(p, a, first, lanes);
      });
    });
  });
}

Prepared prepare_gradient_sums(const NodeView& node, const Capabilities&) {
  const Norm p = norm_of(node, node.input(1).shape);
  return dispatch_floating(node.input(1).dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) {
      for_each_block(p, [&](std::int64_t first, std::int64_t lanes) {
        GradientLanes v = gradient_lanes(p, a, 2, p.relu ? 4 : 0, 5, first, lanes);
        sum_gradients<T>(p, a, v, 0, first, lanes);
      });
    });
  });
}

Prepared prepare_gradient_by_moments(const NodeView& node, const Capabilities&) {
  const Norm p = norm_of(node, node.input(1).shape);
  const auto rows = static_cast<double>(node.attrs().get<std::int64_t>("rows"));
  const double share = rows > 0 ? 1 / rows : 0;
  return dispatch_floating(node.input(1).dtype, [&]<class T>(Type<T>) {
    return launch([p, share](const Args& a) {
      for_each_block(p, [&](std::int64_t first, std::int64_t lanes) {
        GradientLanes v = gradient_lanes(p, a, 3, 2, 7, first, lanes);
        for (std::int64_t c = first; c < first + lanes; ++c) {
          v.dscale[static_cast<std::size_t>(c - first)] = element_as_double(a.in[5], c);
          v.doffset[static_cast<std::size_t>(c - first)] = element_as_double(a.in[6], c);
        }
        store_gradient<T>(p, a, v, share, first, lanes);
      });
    });
  });
}

/// Calls body(row, offset of its first element) for each row of x, in parallel.
template <class F>
void for_each_row(const Shape& x, const F& body) {
  const std::int64_t columns = x.back();
  const std::int64_t rows = columns == 0 ? 0 : x.elements() / columns;
  parallel_for_each(
      rows, rows_per_part(2'000, columns), [&](std::int64_t row) { body(row, row * columns); });
}

Prepared prepare_layer_norm(const NodeView& node, const Capabilities&) {
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([shape = node.input(0).shape,
                   epsilon = node.attrs().get<double>("epsilon")](const Args& a) {
      const std::int64_t columns = shape.back();
      for_each_row(shape, [&](std::int64_t row, std::int64_t first) {
        const T* x = a.in[0].as<T>() + first;
        T* y = a.out[0].as<T>() + first;
        if (a.in.size() > 3) {
          const std::int64_t period = a.in[3].shape.elements();
          T* sum = a.out[3].as<T>() + first;
          for (std::int64_t c = 0; c < columns; ++c) {
            sum[c] = store<T>(load_sum(x[c]) + load_sum(a.in[3].as<T>()[(first + c) % period]));
          }
          x = sum;
        }
        double mean = 0, variance = 0;
        for (std::int64_t c = 0; c < columns; ++c) mean += load_sum(x[c]);
        mean /= static_cast<double>(columns);
        for (std::int64_t c = 0; c < columns; ++c) {
          variance += (load_sum(x[c]) - mean) * (load_sum(x[c]) - mean);
        }
        const double inverse = 1 / std::sqrt(variance / static_cast<double>(columns) + epsilon);
        for (std::int64_t c = 0; c < columns; ++c) {
          const double normal = (load_sum(x[c]) - mean) * inverse;
          y[c] = store<T>(normal * element_as_double(a.in[1], c) + element_as_double(a.in[2], c));
        }
        set(a.out[1], row, mean);
        set(a.out[2], row, inverse);
      });
    });
  });
}

Prepared prepare_layer_norm_grad(const NodeView& node, const Capabilities&) {
  return dispatch_floating(node.input(1).dtype, [&]<class T>(Type<T>) {
    const auto y_addends =
        node.inputs() - 5 - static_cast<std::size_t>(node.attrs().get<std::int64_t>("x_addends"));
    return launch([shape = node.input(1).shape, y_addends](const Args& a) {
      const std::int64_t columns = shape.back();
      const std::int64_t rows = columns == 0 ? 0 : shape.elements() / columns;
      const T* x = a.in[1].as<T>();
      const auto sum = [](double value, std::span<const TensorView> addends, std::int64_t at) {
        for (const TensorView& addend : addends) value += load_sum(addend.as<T>()[at]);
        return load_sum(store<T>(value));
      };
      const auto dy = [&](std::int64_t at) {
        return sum(load_sum(a.in[0].as<T>()[at]), a.in.subspan(5, y_addends), at);
      };
      const auto normal = [&](std::int64_t row, std::int64_t c) {
        return (load_sum(x[row * columns + c]) - element_as_double(a.in[3], row)) *
               element_as_double(a.in[4], row);
      };
      // Before dx, which may alias dy or x.
      parallel_for_each(columns, 16, [&](std::int64_t c) {
        double dgamma = 0, dbeta = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const double g = dy(row * columns + c);
          dgamma += g * normal(row, c);
          dbeta += g;
        }
        set(a.out[1], c, dgamma);
        set(a.out[2], c, dbeta);
      });
      for_each_row(shape, [&](std::int64_t row, std::int64_t first) {
        const auto scaled = [&](std::int64_t c) {
          return dy(first + c) * element_as_double(a.in[2], c);
        };
        double mean = 0, slope = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
          mean += scaled(c);
          slope += scaled(c) * normal(row, c);
        }
        mean /= static_cast<double>(columns);
        slope /= static_cast<double>(columns);
        T* dx = a.out[0].as<T>() + first;
        for (std::int64_t c = 0; c < columns; ++c) {
          const T own = store<T>(element_as_double(a.in[4], row) *
                                 (scaled(c) - mean - normal(row, c) * slope));
          dx[c] = store<T>(sum(load_sum(own), a.in.subspan(5 + y_addends), first + c));
        }
      });
    });
  });
}

}  // namespace

std::vector<Kernel> norm_kernels() {
  return {
      {"BatchMoments", "reference/batch_moments", executable, prepare_moments},
      {"NormalizeByMoments", "reference/normalize_by_moments", executable, prepare_norm, 0b100001},
      {"BatchNormGradSums", "reference/batch_norm_grad_sums", executable, prepare_gradient_sums},
      {"NormalizeByMomentsGrad",
       "reference/normalize_by_moments_grad",
       executable,
       prepare_gradient_by_moments,
       0b11},
      {"FusedBatchNormV3", "reference/fused_batch_norm_v3", executable, prepare_norm, 0b1},
      {"FusedBatchNormGradV3",
       "reference/fused_batch_norm_grad_v3",
       executable,
       prepare_norm_grad,
       0b11},
      {"_FusedBatchNormEx", "reference/fused_batch_norm_ex", executable, prepare_norm, 0b100001},
      {"BatchNormReluGrad", "reference/batch_norm_relu_grad", executable, prepare_norm_grad, 0b11},
      {"LayerNorm", "reference/layer_norm", executable, prepare_layer_norm, 0b1},
      {"LayerNormGrad", "reference/layer_norm_grad", executable, prepare_layer_norm_grad, 0b11},
  };
}

}  // namespace halfstep::backend::cpu
