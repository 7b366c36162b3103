#include "backend/cuda/kernels/layer_norm.h"

#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// A row of a layer normalization, which a warp computes. Lanes of a row beyond `rows` must not
/// return early, because shuffles need whole warps.
struct WarpRow {
  static constexpr int k_lanes = 32;
  std::int64_t row;
  bool exists;
  std::int64_t first;  ///< offset of the lane's first element
  std::int64_t end;

  __device__ WarpRow(std::int64_t rows, std::int64_t columns)
      : row(thread_of_grid() / k_lanes),
        exists(row < rows),
        first(exists ? row * columns + lane() : 0),
        end(exists ? (row + 1) * columns : 0) {}
  __device__ static int lane() { return static_cast<int>(thread()) % k_lanes; }
  /// The sum of term(offset) over the row, in all lanes.
  template <class C, class Term>
  __device__ C sum(const Term& term) const {
    C sum = 0;
    for (std::int64_t at = first; at < end; at += k_lanes) sum += term(at);
    for (unsigned o = k_lanes / 2; o > 0; o /= 2) sum += shuffle_xor(sum, o);
    return sum;
  }
};

Grid grid_of_warps(std::int64_t rows) {
  constexpr unsigned k_warps = 4;
  return {.blocks = (rows + k_warps - 1) / k_warps,
          .threads = k_warps * WarpRow::k_lanes,
          .cooperates = true};
}

template <class T>
struct RowsToNormalize {
  using C = Compute<T>;
  const T* x;
  const C* gamma;
  const C* beta;
  T* y;
  C* mean;
  C* inverse;
  std::int64_t rows, columns;
  C epsilon;
};

template <class T>
__global__ void layer_norm_kernel(RowsToNormalize<T> t) {
  using C = Compute<T>;
  const WarpRow r(t.rows, t.columns);
  const C n = static_cast<C>(t.columns);
  const C mean = r.template sum<C>([&](std::int64_t at) { return C(load(t.x[at])); }) / n;
  const C squares = r.template sum<C>([&](std::int64_t at) {
    const C distance = load(t.x[at]) - mean;
    return distance * distance;
  });
  const C inverse = C(1) / std::sqrt(squares / n + t.epsilon);
  for (std::int64_t at = r.first; at < r.end; at += WarpRow::k_lanes) {
    const std::int64_t c = at - r.row * t.columns;
    t.y[at] = store<T>((load(t.x[at]) - mean) * inverse * t.gamma[c] + t.beta[c]);
  }
  if (!r.exists || WarpRow::lane() != 0) return;
  t.mean[r.row] = mean;
  t.inverse[r.row] = inverse;
}

template <class T>
struct RowGradients {
  using C = Compute<T>;
  const T* dy;
  const T* x;
  const C* gamma;
  const C* mean;
  const C* inverse;
  std::int64_t rows, columns;

  __device__ C normal(T value, std::int64_t row) const {
    return (load(value) - mean[row]) * inverse[row];
  }
};

/// The sums of a column.
template <class C>
struct ColumnSums {
  C dy;       ///< sum of dy
  C dy_xhat;  ///< sum of dy * xhat
};

/// dgamma and dbeta.
template <class T>
struct RowParameterFold : GradientRows<T, RowGradients<T>> {
  using C = Compute<T>;
  using Value = ColumnSums<C>;
  C* dgamma;
  C* dbeta;

  __device__ Value first() const { return {0, 0}; }
  template <class Row>
  __device__ Value add(Value sums, const Row& row, int i, std::int64_t k) const {
    const C g = load(row.dy.element[i]);
    return {sums.dy + g, sums.dy_xhat + g * this->in.normal(row.x.element[i], k)};
  }
  __device__ Value merge(Value a, Value b) const { return {a.dy + b.dy, a.dy_xhat + b.dy_xhat}; }
  __device__ void finish(std::int64_t c, Value sums) const {
    dgamma[c] = sums.dy_xhat;
    dbeta[c] = sums.dy;
  }
};

template <class T>
__global__ void layer_norm_grad_kernel(RowGradients<T> in, T* dx) {
  using C = Compute<T>;
  const WarpRow r(in.rows, in.columns);
  const C n = static_cast<C>(in.columns);
  const auto scaled = [&](std::int64_t at) -> C {
    return load(in.dy[at]) * in.gamma[at - r.row * in.columns];
  };
  const C mean = r.template sum<C>(scaled) / n;
  const C slope = r.template sum<C>([&](std::int64_t at) {
    return scaled(at) * in.normal(in.x[at], r.row);
  }) / n;
  for (std::int64_t at = r.first; at < r.end; at += WarpRow::k_lanes) {
    dx[at] = store<T>(in.inverse[r.row] * (scaled(at) - mean - in.normal(in.x[at], r.row) * slope));
  }
}

}  // namespace

void layer_norm(Stream stream, const LayerNormParams& p) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    launch(layer_norm_kernel<T>,
           grid_of_warps(p.rows),
           stream,
           RowsToNormalize<T>{static_cast<const T*>(p.x),
                              static_cast<const C*>(p.gamma),
                              static_cast<const C*>(p.beta),
                              static_cast<T*>(p.y),
                              static_cast<C*>(p.mean),
                              static_cast<C*>(p.inverse),
                              p.rows,
                              p.columns,
                              static_cast<C>(p.epsilon)});
  });
}

std::size_t layer_norm_grad_workspace(const LayerNormGradParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    bytes = FoldPlan(p.rows, p.columns).template workspace_bytes<RowParameterFold<T>>();
  });
  return bytes;
}

void layer_norm_grad(Stream stream, const LayerNormGradParams& p) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const RowGradients<T> in{static_cast<const T*>(p.dy),
                             static_cast<const T*>(p.x),
                             static_cast<const C*>(p.gamma),
                             static_cast<const C*>(p.mean),
                             static_cast<const C*>(p.inverse),
                             p.rows,
                             p.columns};
    // Before dx, which may have the memory of dy or x.
    run_fold(stream,
             RowParameterFold<T>{{in}, static_cast<C*>(p.dgamma), static_cast<C*>(p.dbeta)},
             FoldPlan(p.rows, p.columns),
             p.workspace,
             p.tickets);
    launch(layer_norm_grad_kernel<T>, grid_of_warps(p.rows), stream, in, static_cast<T*>(p.dx));
  });
}

}  // namespace halfstep::backend::cuda::kernels
