#pragma once
// Folds whose outputs are the columns of rows: a thread folds a pack of adjacent columns.

#include <cstddef>
#include <utility>

#include "backend/cuda/kernels/device/fold_parts.h"
#include "backend/cuda/kernels/device/fold_plan.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {

/// A base of a Fold over the rows of one tensor.
template <class T>
struct Rows {
  static constexpr int k_width = k_pack_width<T>;
  const T* x;

  bool packed() const { return aligned(x, 16); }
  template <int width>
  __device__ Pack<T, width> load(std::int64_t offset) const {
    return load_pack<T, width>(x + offset);
  }
};

/// A base of a Fold over those of a gradient and a value, `dy` and `x` of In.
template <class T, class In>
struct GradientRows {
  static constexpr int k_width = k_pack_width<T>;
  template <int width>
  struct Row {
    Pack<T, width> dy, x;
  };
  In in;

  bool packed() const { return aligned(in.dy, 16) && aligned(in.x, 16); }
  template <int width>
  __device__ Row<width> load(std::int64_t offset) const {
    return {load_pack<T, width>(in.dy + offset), load_pack<T, width>(in.x + offset)};
  }
};

template <class Fold, int width>
struct PreparedColumns {
  Fold fold[width];
};

template <class Fold, int... i>
__device__ inline PreparedColumns<Fold, sizeof...(i)> prepared_columns(
    const Fold& fold, std::int64_t first, std::integer_sequence<int, i...>) {
  return {{prepared(fold, first + i)...}};
}

/// A block has `packs` packs of columns, a power of two, which share its threads equally.
template <int width, class Fold>
__global__ void HALFSTEP_BLOCK_OF(FoldPlan::k_threads, 2)
    fold_columns_kernel(Fold fold,
                        std::int64_t columns,
                        std::int64_t rows,
                        unsigned packs,
                        std::int64_t length,
                        FoldParts<Fold> parts) {
  using Row = decltype(fold.template load<width>(0));
  constexpr unsigned k_threads = FoldPlan::k_threads;
  constexpr int k_unrolled = sizeof(Row) <= 16 ? 8 : 4;
  const unsigned lanes = threads() / packs;
  HALFSTEP_SHARED(typename Fold::Value, values, k_threads * width);
  const unsigned lane = thread() / packs;
  const std::int64_t first = (block() * packs + thread() % packs) * width;
  const std::int64_t end = (row() + 1) * length < rows ? (row() + 1) * length : rows;
  const auto here =
      prepared_columns(fold, first < columns ? first : 0, std::make_integer_sequence<int, width>{});
  typename Fold::Value value[width];
  for (int i = 0; i < width; ++i) value[i] = fold.first();
  if (first < columns) {
    const auto add = [&](Row& loaded, std::int64_t at, std::int64_t k) {
      if constexpr (requires { fold.visit(loaded, at); }) fold.visit(loaded, at);
      for (int i = 0; i < width; ++i) value[i] = here.fold[i].add(value[i], loaded, i, k);
    };
    std::int64_t k = row() * length + lane;
    std::int64_t offset = k * columns + first;
    const std::int64_t step = lanes * columns;
    for (; k + (k_unrolled - 1) * lanes < end; k += k_unrolled * lanes) {
      Row loaded[k_unrolled];
      for (int u = 0; u < k_unrolled; ++u) {
        loaded[u] = fold.template load<width>(offset + u * step);
      }
      for (int u = 0; u < k_unrolled; ++u, offset += step) add(loaded[u], offset, k + u * lanes);
    }
    // The rows that are left, in short parts all, are also loaded before the first is added.
    Row loaded[k_unrolled - 1];
    for (int u = 0; u < k_unrolled - 1; ++u) {
      if (k + u * lanes < end) loaded[u] = fold.template load<width>(offset + u * step);
    }
    for (int u = 0; u < k_unrolled - 1; ++u, offset += step) {
      if (k + u * lanes < end) add(loaded[u], offset, k + u * lanes);
    }
  }
  for (int i = 0; i < width; ++i) values[i * k_threads + thread()] = value[i];
  for (unsigned half = lanes / 2; half > 0; half /= 2) {
    sync_block();
    if (lane >= half) continue;
    for (int i = 0; i < width; ++i) {
      value[i] = fold.merge(value[i], values[i * k_threads + thread() + half * packs]);
      values[i * k_threads + thread()] = value[i];
    }
  }
  if (lane == 0 && first < columns) {
    for (int i = 0; i < width; ++i) parts.give(here.fold[i], columns, first + i, value[i]);
  }
  if (parts.tickets == nullptr || !is_last_block(parts.tickets + block(), parts.count)) return;
  const std::int64_t begin = block() * packs * width;
  const std::int64_t rest = columns - begin;
  const std::int64_t most = packs * width;
  merge_outputs(fold, parts, columns, begin, static_cast<unsigned>(rest < most ? rest : most));
}

}  // namespace halfstep::backend::cuda::kernels
