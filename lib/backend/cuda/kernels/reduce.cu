#include "backend/cuda/kernels/reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/fold.h"

namespace halfstep::backend::cuda::kernels {
namespace {

FoldPlan plan_of(const Shape& shape, unsigned axes) {
  const Strides dense = dense_strides(shape);
  std::vector<std::int64_t> dims[2];
  Strides steps[2] = {};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const unsigned reduced = axes >> axis & 1U;
    steps[reduced][dims[reduced].size()] = dense[axis];
    dims[reduced].push_back(shape[axis]);
  }
  return {Walk<1>(Shape(dims[0]), {steps[0]}), Walk<1>(Shape(dims[1]), {steps[1]})};
}

/// Sum, mean (`divisor` is the count) and half the sum of squares (l2).
template <class T, bool squares = false>
struct SumFold : Rows<T> {
  using Value = Sum<T>;
  T* y;
  Value divisor;

  __device__ Value first() const { return 0; }
  __device__ Value add(Value sum, T element) const {
    const Value term = load_sum(element);
    return sum + (squares ? term * term : term);
  }
  template <int width>
  __device__ Value add(Value sum, const Pack<T, width>& pack, int i, std::int64_t) const {
    return add(sum, pack.element[i]);
  }
  __device__ Value take(Value sum, std::int64_t offset, std::int64_t, std::int64_t) const {
    return add(sum, this->x[offset]);
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t output, Value sum) const {
    const bool divides = std::is_floating_point_v<Value> || divisor != 0;
    y[output] = store<T>(divides ? sum / divisor : sum);
  }
};

template <class T>
struct ProductFold {
  using Value = Sum<T>;
  const T* x;
  T* y;

  __device__ Value first() const { return 1; }
  __device__ Value take(Value product, std::int64_t offset, std::int64_t, std::int64_t) const {
    return product * load_sum(x[offset]);
  }
  __device__ Value merge(Value a, Value b) const { return a * b; }
  __device__ void finish(std::int64_t output, Value product) const {
    y[output] = store<T>(product);
  }
};

/// Whether x replaces the extremum so far; nothing replaces a NaN.
template <bool largest, class C>
__device__ inline bool beats(C x, C best) {
  return !(largest ? x <= best : x >= best) && best == best;
}

template <class T, bool largest>
struct ExtremumFold {
  using Value = Compute<T>;
  const T* x;
  T* y;

  __device__ Value first() const {
    using Limits = std::numeric_limits<Value>;
    if constexpr (Limits::has_infinity) {
      return largest ? -Limits::infinity() : Limits::infinity();
    } else {
      return largest ? Limits::lowest() : Limits::max();
    }
  }
  __device__ Value take(Value best, std::int64_t offset, std::int64_t, std::int64_t) const {
    return merge(best, load(x[offset]));
  }
  __device__ Value merge(Value a, Value b) const { return beats<largest>(b, a) ? b : a; }
  __device__ void finish(std::int64_t output, Value best) const { y[output] = store<T>(best); }
};

template <class C>
struct Candidate {
  C value;
  std::int64_t index;  ///< -1: none
};

/// Parts may be merged in any order: of equal values, and of several NaN, the smallest index wins.
template <class T, bool largest>
struct IndexFold {
  using C = Compute<T>;
  using Value = Candidate<C>;
  const T* x;
  void* y;
  bool wide;  ///< y is int64, else int32

  __device__ Value first() const { return {C{}, -1}; }
  __device__ Value take(Value best, std::int64_t offset, std::int64_t k, std::int64_t) const {
    return merge(best, {load(x[offset]), k});
  }
  __device__ Value merge(Value a, Value b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool equal = a.value == b.value || (a.value != a.value && b.value != b.value);
    if (equal) return a.index < b.index ? a : b;
    return beats<largest>(b.value, a.value) ? b : a;
  }
  __device__ void finish(std::int64_t output, Value best) const {
    const std::int64_t index = best.index < 0 ? 0 : best.index;
    if (wide) {
      static_cast<std::int64_t*>(y)[output] = index;
    } else {
      static_cast<std::int32_t*>(y)[output] = static_cast<std::int32_t>(index);
    }
  }
};

template <bool all>
struct LogicalFold {
  using Value = bool;
  const bool* x;
  bool* y;

  __device__ Value first() const { return all; }
  __device__ Value take(Value value, std::int64_t offset, std::int64_t, std::int64_t) const {
    return merge(value, x[offset]);
  }
  __device__ Value merge(Value a, Value b) const { return all ? a && b : a || b; }
  __device__ void finish(std::int64_t output, Value value) const { y[output] = value; }
};

/// Calls f with the fold of a reduction.
template <class T, class F>
void with_number_fold(const ReduceParams& p, const FoldPlan& plan, const F& f) {
  const T* x = static_cast<const T*>(p.x);
  T* y = static_cast<T*>(p.y);
  switch (p.reduction) {
    case Reduction::max:
      return f(ExtremumFold<T, true>{x, y});
    case Reduction::min:
      return f(ExtremumFold<T, false>{x, y});
    case Reduction::mean:
      return f(SumFold<T>{{x}, y, static_cast<Sum<T>>(plan.reduced.elements)});
    case Reduction::prod:
      return f(ProductFold<T>{x, y});
    case Reduction::sum:
      return f(SumFold<T>{{x}, y, 1});
    default:
      refuse(p.dtype);
  }
}

template <class T, class F>
void with_index_fold(const ReduceParams& p, const F& f) {
  const T* x = static_cast<const T*>(p.x);
  const bool wide = p.index == DType::int64;
  if (!wide && p.index != DType::int32) refuse(p.index);
  if (p.reduction == Reduction::arg_max) return f(IndexFold<T, true>{x, p.y, wide});
  f(IndexFold<T, false>{x, p.y, wide});
}

template <class F>
void with_fold(const ReduceParams& p, const FoldPlan& plan, const F& f) {
  switch (p.reduction) {
    case Reduction::all:
    case Reduction::any: {
      if (p.dtype != DType::boolean) refuse(p.dtype);
      const bool* x = static_cast<const bool*>(p.x);
      bool* y = static_cast<bool*>(p.y);
      if (p.reduction == Reduction::all) return f(LogicalFold<true>{x, y});
      return f(LogicalFold<false>{x, y});
    }
    case Reduction::arg_max:
    case Reduction::arg_min:
      return dispatch_any(p.dtype, [&]<class T>(Type<T>) { with_index_fold<T>(p, f); });
    default:
      dispatch_number(p.dtype, [&]<class T>(Type<T>) { with_number_fold<T>(p, plan, f); });
  }
}

/// Sums over the first axes are those of columns.
FoldPlan plan_of(const ReduceParams& p) {
  const bool sums = p.reduction == Reduction::sum || p.reduction == Reduction::mean;
  std::size_t first = 0;
  while (p.axes >> first & 1U) ++first;
  if (!sums || first == 0 || p.axes >> first != 0 || first >= p.shape.rank()) {
    return plan_of(p.shape, p.axes);
  }
  return {p.shape.elements(0, first), p.shape.elements(first, p.shape.rank())};
}

FoldPlan plan_of(const L2LossParams& p) { return plan_of(Shape{p.elements}, 1); }

template <class Index>
__global__ void in_top_k_kernel(InTopKParams p) {
  const auto k = static_cast<std::int64_t>(*static_cast<const Index*>(p.k));
  for (std::int64_t r = thread_of_grid(); r < p.rows; r += threads_of_grid()) {
    const float* x = p.scores + r * p.classes;
    const auto target = static_cast<std::int64_t>(static_cast<const Index*>(p.targets)[r]);
    bool known = target >= 0 && target < p.classes && std::isfinite(x[target]);
    std::int64_t above = 0;
    for (std::int64_t i = 0; known && i < p.classes; ++i) {
      known = std::isfinite(x[i]);
      above += x[i] > x[target] ? 1 : 0;
    }
    p.y[r] = known && above < k;
  }
}

}  // namespace

std::optional<Reduction> reduction_of(std::string_view op) {
  for (const auto& [name, reduction] : k_reductions) {
    if (name == op) return reduction;
  }
  return std::nullopt;
}

std::size_t reduce_workspace(const ReduceParams& p) {
  const FoldPlan plan = plan_of(p);
  std::size_t bytes = 0;
  with_fold(p, plan, [&]<class Fold>(const Fold&) { bytes = plan.workspace_bytes<Fold>(); });
  return bytes;
}

void reduce(Stream stream, const ReduceParams& p) {
  const FoldPlan plan = plan_of(p);
  with_fold(
      p, plan, [&](const auto& fold) { run_fold(stream, fold, plan, p.workspace, p.tickets); });
}

std::size_t l2_loss_workspace(const L2LossParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    bytes = plan_of(p).template workspace_bytes<SumFold<T, true>>();
  });
  return bytes;
}

void l2_loss(Stream stream, const L2LossParams& p) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    const SumFold<T, true> fold{{static_cast<const T*>(p.x)}, static_cast<T*>(p.y), 2};
    run_fold(stream, fold, plan_of(p), p.workspace, p.tickets);
  });
}

void in_top_k(Stream stream, const InTopKParams& p) {
  dispatch_index(p.index, [&]<class Index>(Type<Index>) {
    launch(in_top_k_kernel<Index>, grid_of(p.rows), stream, p);
  });
}

}  // namespace halfstep::backend::cuda::kernels
