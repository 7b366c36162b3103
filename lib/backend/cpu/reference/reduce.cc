// Reductions over the axes of the constant second input. Sum, Mean and Prod run in double
// (int64 for integers) and are rounded once; Max and Min propagate NaN; ArgMax and ArgMin return
// the first index. Bit-identical for every number of threads.

#include <cmath>
#include <limits>

#include "backend/cpu/reference/reduction.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {

Reduction reduction(const Shape& shape, const std::vector<bool>& is_reduced) {
  const Strides strides = dense_strides(shape);
  Reduction r;
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> reduced;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    std::vector<std::int64_t>& dims = is_reduced[axis] ? reduced : kept;
    (is_reduced[axis] ? r.reduced_strides : r.kept_strides)[0][dims.size()] = strides[axis];
    dims.push_back(shape[axis]);
  }
  r.kept = Shape(kept);
  r.reduced = Shape(reduced);
  return r;
}

namespace {

Reduction reduction_of(const NodeView& node) {
  const Shape& shape = node.input(0).shape;
  std::vector<bool> is_reduced(shape.rank(), false);
  const std::vector<std::int64_t> axes = node.constant(1).value();
  for (const std::int64_t axis : axes) is_reduced[axis_of(axis, shape.rank())] = true;
  return reduction(shape, is_reduced);
}

Accepts constant_axes(const NodeView& node, const Capabilities& capabilities) {
  if (!node.constant(1)) return Accepts::no("the axes are not constant");
  return executable(node, capabilities);
}

/// Mean is the sum divided by the count.
enum class Kind { sum, mean, product };

template <Kind kind>
Prepared prepare_sum(const NodeView& node, const Capabilities&) {
  const Reduction r = reduction_of(node);
  return dispatch_number(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([r](const Args& args) {
      T* y = args.out[0].as<T>();
      const auto count = static_cast<Sum<T>>(r.reduced.elements());
      fold(
          r,
          args.in[0].as<T>(),
          Sum<T>(kind == Kind::product ? 1 : 0),
          [](Sum<T> value, T x, std::int64_t) {
            return kind == Kind::product ? value * load_sum(x) : value + load_sum(x);
          },
          [&](std::int64_t i, Sum<T> value) {
            if constexpr (kind == Kind::mean) {
              if (std::is_floating_point_v<Sum<T>> || count != 0) value /= count;
            }
            y[i] = store<T>(value);
          });
    });
  });
}

/// Whether x replaces the extremum so far; nothing replaces a NaN.
template <bool largest, class C>
bool beats(C x, C best) {
  return !(largest ? x <= best : x >= best) && best == best;
}

template <bool largest>
Prepared prepare_extremum(const NodeView& node, const Capabilities&) {
  const Reduction r = reduction_of(node);
  return dispatch_number(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([r](const Args& args) {
      using C = Compute<T>;
      using Limits = std::numeric_limits<C>;
      T* y = args.out[0].as<T>();
      C first = largest ? Limits::lowest() : Limits::max();
      if constexpr (Limits::has_infinity)
        first = largest ? -Limits::infinity() : Limits::infinity();
      fold(
          r,
          args.in[0].as<T>(),
          first,
          [](C best, T x, std::int64_t) { return beats<largest>(load(x), best) ? load(x) : best; },
          [&](std::int64_t i, C best) { y[i] = store<T>(best); });
    });
  });
}

template <bool largest>
Prepared prepare_arg(const NodeView& node, const Capabilities&) {
  const Reduction r = reduction_of(node);
  const bool wide = node.output().dtype == DType::int64;
  return dispatch(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([r, wide](const Args& args) {
      struct Best {
        Compute<T> value;
        std::int64_t index;
      };
      fold(
          r,
          args.in[0].as<T>(),
          Best{},
          [](Best best, T x, std::int64_t k) {
            const bool better = k == 0 || beats<largest>(load(x), best.value);
            return better ? Best{load(x), k} : best;
          },
          [&](std::int64_t i, const Best& best) {
            if (wide) {
              args.out[0].as<std::int64_t>()[i] = best.index;
            } else {
              args.out[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(best.index);
            }
          });
    });
  });
}

template <bool all>
Prepared prepare_logical(const NodeView& node, const Capabilities&) {
  const Reduction r = reduction_of(node);
  return launch([r](const Args& args) {
    bool* y = args.out[0].as<bool>();
    fold(
        r,
        args.in[0].as<bool>(),
        all,
        [](bool value, bool x, std::int64_t) { return all ? value && x : value || x; },
        [&](std::int64_t i, bool value) { y[i] = value; });
  });
}

/// sum(x^2) / 2 over all elements.
Prepared prepare_l2_loss(const NodeView& node, const Capabilities&) {
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([](const Args& args) {
      const T* x = args.in[0].as<T>();
      double sum = 0;
      for (std::int64_t i = 0; i < args.in[0].elements(); ++i)
        sum += load_sum(x[i]) * load_sum(x[i]);
      args.out[0].as<T>()[0] = store<T>(sum / 2);
    });
  });
}

/// y[r] = fewer than k classes of row r score above its target. False where the target is out of
/// range or a score involved is not finite, as in TensorFlow.
Prepared prepare_in_top_k(const NodeView& node, const Capabilities&) {
  const Shape shape = node.input(0).shape;
  return dispatch_number(node.input(1).dtype, [&]<class T>(Type<T>) {
    return launch([shape](const Args& args) {
      const float* scores = args.in[0].as<float>();
      const T* targets = args.in[1].as<T>();
      const auto k = static_cast<std::int64_t>(load_sum(args.in[2].as<T>()[0]));
      bool* y = args.out[0].as<bool>();
      for (std::int64_t row = 0; row < shape[0]; ++row) {
        const float* x = scores + row * shape[1];
        const auto target = static_cast<std::int64_t>(load_sum(targets[row]));
        bool known = target >= 0 && target < shape[1] && std::isfinite(x[target]);
        std::int64_t above = 0;
        for (std::int64_t i = 0; known && i < shape[1]; ++i) {
          known = std::isfinite(x[i]);
          above += x[i] > x[target] ? 1 : 0;
        }
        y[row] = known && above < k;
      }
    });
  });
}

}  // namespace

std::vector<Kernel> reduce_kernels() {
  return {
      {"All", "reference/all", constant_axes, prepare_logical<true>},
      {"Any", "reference/any", constant_axes, prepare_logical<false>},
      {"ArgMax", "reference/arg_max", constant_axes, prepare_arg<true>},
      {"ArgMin", "reference/arg_min", constant_axes, prepare_arg<false>},
      {"InTopKV2", "reference/in_top_k_v2", executable, prepare_in_top_k},
      {"L2Loss", "reference/l2_loss", executable, prepare_l2_loss},
      {"Max", "reference/max", constant_axes, prepare_extremum<true>},
      {"Mean", "reference/mean", constant_axes, prepare_sum<Kind::mean>},
      {"Min", "reference/min", constant_axes, prepare_extremum<false>},
      {"Prod", "reference/prod", constant_axes, prepare_sum<Kind::product>},
      {"Sum", "reference/sum", constant_axes, prepare_sum<Kind::sum>},
  };
}

}  // namespace halfstep::backend::cpu
