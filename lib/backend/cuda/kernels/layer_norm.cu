#include "backend/cuda/kernels/layer_norm.h"

#include <algorithm>
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
  const T* addend;
  std::int64_t addend_rows;
  T* sum;
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
  const T* const x = t.addend == nullptr ? t.x : t.sum;
  const T* const addend =
      t.addend == nullptr ? nullptr : t.addend + (r.row % t.addend_rows - r.row) * t.columns;
  const C mean = r.template sum<C>([&](std::int64_t at) {
    if (addend != nullptr) t.sum[at] = store<T>(load(t.x[at]) + load(addend[at]));
    return C(load(x[at]));
  }) / n;
  const C squares = r.template sum<C>([&](std::int64_t at) {
    const C distance = load(x[at]) - mean;
    return distance * distance;
  });
  const C inverse = C(1) / std::sqrt(squares / n + t.epsilon);
  for (std::int64_t at = r.first; at < r.end; at += WarpRow::k_lanes) {
    const std::int64_t c = at - r.row * t.columns;
    t.y[at] = store<T>((load(x[at]) - mean) * inverse * t.gamma[c] + t.beta[c]);
  }
  if (!r.exists || WarpRow::lane() != 0) return;
  t.mean[r.row] = mean;
  t.inverse[r.row] = inverse;
}

/// Adds the elements of tensors at an offset, up to the first nullptr, and rounds the sums.
template <int width, class T, std::size_t count>
__device__ void add_rounded(T* to, const T* const (&addends)[count], std::int64_t at) {
  Compute<T> sum[width];
  for (int i = 0; i < width; ++i) sum[i] = load(to[i]);
  for (std::size_t n = 0; n < count && addends[n] != nullptr; ++n) {
    const Pack<T, width> addend = load_pack<T, width>(addends[n] + at);
    for (int i = 0; i < width; ++i) sum[i] += load(addend.element[i]);
  }
  for (int i = 0; i < width; ++i) to[i] = store<T>(sum[i]);
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
  const T* dy_addends[LayerNormGradParams::k_max_addends];
  const T* dx_addend[1];

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

/// Of rows of up to 32 * `each` columns, dx and the parameters' gradients by one launch. A lane has
/// adjacent columns of the rows of its warp, of which several are loaded at once; the blocks' sums
/// are the parts of a fold.
template <int each>
struct NarrowRows {
  static constexpr unsigned k_warps = 8, k_threads = k_warps * WarpRow::k_lanes;
  static constexpr int k_columns = each * WarpRow::k_lanes;
  static constexpr int k_rows = each > 4 ? 2 : 4;  ///< at once
};

template <int each, class T>
__global__ void HALFSTEP_BLOCK_OF(NarrowRows<each>::k_threads, 1) layer_norm_grad_narrow_kernel(
    RowParameterFold<T> fold, T* dx, bool packed, FoldParts<RowParameterFold<T>> parts) {
  using C = Compute<T>;
  using N = NarrowRows<each>;
  constexpr int k_rows = N::k_rows;
  const RowGradients<T>& in = fold.in;
  const int warp = static_cast<int>(thread()) / WarpRow::k_lanes;
  const int first = WarpRow::lane() * each;
  const auto columns = static_cast<int>(in.columns);
  const C n = static_cast<C>(columns);
  C gamma[each];
  for (int i = 0; i < each; ++i) gamma[i] = first + i < columns ? in.gamma[first + i] : C(0);
  ColumnSums<C> sums[each] = {};
  const auto add = [&](T(&to)[each], const auto& addends, std::int64_t row) {
    const std::int64_t at = row * columns + first;
    if (packed) {
      if (first < columns) add_rounded<each>(to, addends, at);
    } else {
      for (int i = 0; i < each && first + i < columns; ++i) add_rounded<1>(to + i, addends, at + i);
    }
  };
  const std::int64_t step = parts.count * N::k_warps * k_rows;
  for (std::int64_t row = (kernels::row() * N::k_warps + warp) * k_rows; row < in.rows;
       row += step) {
    Pack<T, each> dy[k_rows] = {}, x[k_rows] = {};
    C mean[k_rows] = {}, inverse[k_rows] = {};
    for (int r = 0; r < k_rows; ++r) {
      if (row + r >= in.rows) continue;
      const std::int64_t at = (row + r) * columns + first;
      if (packed && first < columns) {
        dy[r] = load_pack<T, each>(in.dy + at);
        x[r] = load_pack<T, each>(in.x + at);
      } else {
        for (int i = 0; i < each && first + i < columns; ++i) {
          dy[r].element[i] = in.dy[at + i];
          x[r].element[i] = in.x[at + i];
        }
      }
      mean[r] = in.mean[row + r];
      inverse[r] = in.inverse[row + r];
    }
    if (in.dy_addends[0] != nullptr) {
      for (int r = 0; r < k_rows && row + r < in.rows; ++r)
        add(dy[r].element, in.dy_addends, row + r);
    }
    C scaled[k_rows] = {}, slope[k_rows] = {};
    for (int r = 0; r < k_rows; ++r) {
      for (int i = 0; i < each; ++i) {
        const C g = load(dy[r].element[i]), normal = (load(x[r].element[i]) - mean[r]) * inverse[r];
        scaled[r] += g * gamma[i];
        slope[r] += g * gamma[i] * normal;
        sums[i].dy += g;
        sums[i].dy_xhat += g * normal;
      }
    }
    for (unsigned o = WarpRow::k_lanes / 2; o > 0; o /= 2) {
      for (int r = 0; r < k_rows; ++r) {
        scaled[r] += shuffle_xor(scaled[r], o);
        slope[r] += shuffle_xor(slope[r], o);
      }
    }
    for (int r = 0; r < k_rows; ++r) {
      if (row + r >= in.rows || first >= columns) continue;
      Pack<T, each> pack;
      for (int i = 0; i < each; ++i) {
        const C normal = (load(x[r].element[i]) - mean[r]) * inverse[r];
        const C term = load(dy[r].element[i]) * gamma[i] - scaled[r] / n - normal * (slope[r] / n);
        pack.element[i] = store<T>(inverse[r] * term);
      }
      if (in.dx_addend[0] != nullptr) add(pack.element, in.dx_addend, row + r);
      T* const at = dx + (row + r) * columns + first;
      if (packed) {
        store_pack<T, each>(at, pack);
      } else {
        for (int i = 0; i < each && first + i < columns; ++i) at[i] = pack.element[i];
      }
    }
  }
  HALFSTEP_SHARED(ColumnSums<C>, values, N::k_warps * N::k_columns);
  for (int i = 0; i < each; ++i) values[warp * N::k_columns + first + i] = sums[i];
  sync_block();
  if (thread() < in.columns) {
    ColumnSums<C> sum = values[thread()];
    for (unsigned w = 1; w < N::k_warps; ++w) {
      sum = fold.merge(sum, values[w * N::k_columns + thread()]);
    }
    parts.give(fold, in.columns, thread(), sum);
  }
  if (parts.values == nullptr || !is_last_block(parts.tickets, parts.count)) return;
  merge_outputs(fold, parts, in.columns, 0, static_cast<unsigned>(columns));
}

/// The parts of the narrow kernel's sums: of 64 rows or more, and up to two blocks for each
/// multiprocessor of an H100.
std::int64_t narrow_parts(const LayerNormGradParams& p) {
  constexpr std::int64_t k_rows = 2 * NarrowRows<2>::k_warps * NarrowRows<2>::k_rows, k_max = 264;
  return std::clamp<std::int64_t>((p.rows + k_rows - 1) / k_rows, 1, k_max);
}

template <int each, class T>
void run_narrow(Stream stream, const LayerNormGradParams& p, const RowParameterFold<T>& fold) {
  // From compute capability 10.0 on one instruction loads 32 bytes.
  const auto fits = [](const void* x) { return aligned(x, alignof(Pack<T, each>)); };
  const bool packed = p.columns % each == 0 && fits(p.dy) && fits(p.x) && fits(p.dx) &&
                      fits(p.dx_addend) &&
                      std::all_of(std::begin(p.dy_addends), std::end(p.dy_addends), fits);
  const std::int64_t count = narrow_parts(p);
  FoldParts<RowParameterFold<T>> parts{nullptr, p.tickets.data, count};
  if (count > 1) parts.values = static_cast<typename RowParameterFold<T>::Value*>(p.workspace);
  launch(layer_norm_grad_narrow_kernel<each, T>,
         {.rows = count, .threads = NarrowRows<each>::k_threads, .cooperates = true},
         stream,
         fold,
         static_cast<T*>(p.dx),
         packed,
         parts);
}

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
    T own = store<T>(in.inverse[r.row] * (scaled(at) - mean - in.normal(in.x[at], r.row) * slope));
    add_rounded<1>(&own, in.dx_addend, at);
    dx[at] = own;
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
                              static_cast<const T*>(p.addend),
                              p.addend_rows,
                              static_cast<T*>(p.sum),
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
    using Fold = RowParameterFold<T>;
    bytes =
        p.columns > p.k_max_narrow
            ? FoldPlan(p.rows, p.columns).template workspace_bytes<Fold>()
            : static_cast<std::size_t>(narrow_parts(p) * p.columns) * sizeof(typename Fold::Value);
  });
  return bytes;
}

void layer_norm_grad(Stream stream, const LayerNormGradParams& p) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const RowGradients<T> in{
        static_cast<const T*>(p.dy),
        static_cast<const T*>(p.x),
        static_cast<const C*>(p.gamma),
        static_cast<const C*>(p.mean),
        static_cast<const C*>(p.inverse),
        p.rows,
        p.columns,
        {static_cast<const T*>(p.dy_addends[0]), static_cast<const T*>(p.dy_addends[1])},
        {static_cast<const T*>(p.dx_addend)}};
    const RowParameterFold<T> fold{{in}, static_cast<C*>(p.dgamma), static_cast<C*>(p.dbeta)};
    if (p.columns <= NarrowRows<2>::k_columns) return run_narrow<2>(stream, p, fold);
    if (p.columns <= NarrowRows<4>::k_columns) return run_narrow<4>(stream, p, fold);
    if (p.columns <= p.k_max_narrow) {
      return run_narrow<LayerNormGradParams::k_max_narrow / WarpRow::k_lanes>(stream, p, fold);
    }
    // Before dx, which may have the memory of dy or x.
    run_fold(stream, fold, FoldPlan(p.rows, p.columns), p.workspace, p.tickets);
    launch(layer_norm_grad_kernel<T>, grid_of_warps(p.rows), stream, in, static_cast<T*>(p.dx));
  });
}

}  // namespace halfstep::backend::cuda::kernels
