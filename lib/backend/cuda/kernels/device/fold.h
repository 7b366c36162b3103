#pragma once
// Reductions: the terms of each output are folded in a fixed order. Long reductions are split into
// parts, for more threads and shorter sums, and the parts are merged.
//
// The block that finishes the last part of some outputs merges their parts, in a fixed order; where
// there are more outputs than tickets, a second launch does it.
//
// A Fold has a type Value and
//   Value first()                                the neutral element
//   Value take(Value, offset, k, output)         folds the k-th term, at `offset`
//   Value merge(Value, Value)                    combines two parts
//   void finish(output, Value)                   writes the result
//   void prepare(output)                         optional: called before take() for an output
//
// Where the outputs are the columns of rows, a thread folds adjacent columns, a pack from each of
// its rows. Such a Fold has, in place of take() or beside it, the width of a pack of 16 bytes as
// k_width, bool packed() on the host (whether its operands are aligned to packs) and
//   load<width>(offset)                          a pack, by one load for each operand
//   Value add(Value, pack, i, k)                 folds its element i, of row k

#include <utility>

#include "backend/cuda/kernels/device/element.h"
#include "backend/cuda/kernels/device/fold_plan.h"

namespace halfstep::backend::cuda::kernels {

/// Folds term(k) for k = begin, begin + step, ... below end, in four independent chains.
template <class Fold, class Take>
__device__ inline typename Fold::Value fold_terms(
    const Fold& fold, std::int64_t begin, std::int64_t end, std::int64_t step, const Take& take) {
  typename Fold::Value value[4] = {fold.first(), fold.first(), fold.first(), fold.first()};
  std::int64_t k = begin;
  for (; k + 3 * step < end; k += 4 * step) {
    for (int i = 0; i < 4; ++i) value[i] = take(value[i], k + i * step);
  }
  for (; k < end; k += step) value[0] = take(value[0], k);
  return fold.merge(fold.merge(value[0], value[1]), fold.merge(value[2], value[3]));
}

/// Merges the values of a block; the result is in thread 0.
template <class Fold>
__device__ inline typename Fold::Value merge_block(const Fold& fold, typename Fold::Value value) {
  HALFSTEP_SHARED(typename Fold::Value, values, 256);
  values[thread()] = value;
  for (unsigned half = threads() / 2; half > 0; half /= 2) {
    sync_block();
    if (thread() >= half) continue;
    value = fold.merge(value, values[thread() + half]);
    values[thread()] = value;
  }
  return value;
}

/// The parts of a reduction in the workspace, [part, output]; nullptr: each output has one part.
/// `tickets`: one for each block of outputs; nullptr: another launch merges the parts.
template <class Fold>
struct FoldParts {
  typename Fold::Value* values;
  unsigned* tickets;
  std::int64_t count;

  /// Finishes the output if it has one part, else stores the part.
  __device__ void give(const Fold& fold,
                       std::int64_t outputs,
                       std::int64_t output,
                       const typename Fold::Value& value) const {
    if (values == nullptr) {
      fold.finish(output, value);
    } else {
      values[row() * outputs + output] = value;
    }
  }

  /// Folds the parts first, first + step, ... of an output.
  __device__ typename Fold::Value merge(const Fold& fold,
                                        std::int64_t outputs,
                                        std::int64_t output,
                                        std::int64_t first,
                                        std::int64_t step) const {
    return fold_terms(
        fold, first, count, step, [&](const typename Fold::Value& value, std::int64_t k) {
          return fold.merge(value, values[k * outputs + output]);
        });
  }
};

template <class Fold>
__device__ inline Fold prepared(Fold fold, std::int64_t output) {
  if constexpr (requires { fold.prepare(output); }) fold.prepare(output);
  return fold;
}

/// Merges the parts of `width` outputs from `first` on by all threads of a block.
template <class Fold>
__device__ inline void merge_outputs(const Fold& fold,
                                     const FoldParts<Fold>& parts,
                                     std::int64_t outputs,
                                     std::int64_t first,
                                     unsigned width) {
  HALFSTEP_SHARED(typename Fold::Value, lanes, 256);
  const unsigned output = thread() % width;
  const unsigned lane = thread() / width;
  const unsigned lane_count = threads() / width;
  if (lane < lane_count) {
    lanes[thread()] = parts.merge(fold, outputs, first + output, lane, lane_count);
  }
  sync_block();
  if (lane != 0) return;
  auto value = lanes[output];
  for (unsigned i = 1; i < lane_count; ++i) value = fold.merge(value, lanes[i * width + output]);
  prepared(fold, first + output).finish(first + output, value);
}

template <class Fold>
__global__ void fold_across_kernel(
    Fold fold, Walk<1> kept, Walk<1> reduced, std::int64_t length, FoldParts<Fold> parts) {
  const std::int64_t begin = row() * length;
  const std::int64_t end = begin + length < reduced.elements ? begin + length : reduced.elements;
  for (std::int64_t o = thread_of_grid(); o < kept.elements; o += threads_of_grid()) {
    const std::int64_t base = kept.at(o).of[0];
    const Fold here = prepared(fold, o);
    const auto take = [&](const typename Fold::Value& value, std::int64_t k) {
      return here.take(value, base + reduced.at(k).of[0], k, o);
    };
    parts.give(here, kept.elements, o, fold_terms(here, begin, end, 1, take));
  }
  // With tickets a thread has one output.
  if (parts.tickets == nullptr || !is_last_block(parts.tickets + block(), parts.count)) return;
  const std::int64_t first = block() * threads();
  const std::int64_t rest = kept.elements - first;
  merge_outputs(fold,
                parts,
                kept.elements,
                first,
                rest < threads() ? static_cast<unsigned>(rest) : threads());
}

template <class Fold>
__global__ void fold_along_kernel(
    Fold fold, Walk<1> kept, Walk<1> reduced, std::int64_t length, FoldParts<Fold> parts) {
  const std::int64_t begin = row() * length;
  const std::int64_t end = begin + length < reduced.elements ? begin + length : reduced.elements;
  const std::int64_t base = kept.at(block()).of[0];
  const Fold here = prepared(fold, block());
  const auto take = [&](const typename Fold::Value& value, std::int64_t k) {
    return here.take(value, base + reduced.at(k).of[0], k, block());
  };
  const auto value = merge_block(here, fold_terms(here, begin + thread(), end, threads(), take));
  if (thread() == 0) parts.give(here, kept.elements, block(), value);
  if (parts.tickets == nullptr || !is_last_block(parts.tickets + block(), parts.count)) return;
  const auto merged =
      merge_block(here, parts.merge(here, kept.elements, block(), thread(), threads()));
  if (thread() == 0) here.finish(block(), merged);
}

template <class Fold, int width>
struct PreparedColumns {
  Fold fold[width];
};

template <class Fold, int... i>
__device__ inline PreparedColumns<Fold, sizeof...(i)> prepared_columns(
    const Fold& fold, std::int64_t first, std::integer_sequence<int, i...>) {
  return {{prepared(fold, first + i)...}};
}

/// A block has `packs` packs of columns, a power of two, and as many threads for each as there are.
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
  const unsigned lanes = k_threads / packs;
  HALFSTEP_SHARED(typename Fold::Value, values, k_threads * width);
  const unsigned lane = thread() / packs;
  const std::int64_t first = (block() * packs + thread() % packs) * width;
  const std::int64_t end = (row() + 1) * length < rows ? (row() + 1) * length : rows;
  const auto here =
      prepared_columns(fold, first < columns ? first : 0, std::make_integer_sequence<int, width>{});
  typename Fold::Value value[width];
  for (int i = 0; i < width; ++i) value[i] = fold.first();
  if (first < columns) {
    const auto add = [&](const Row& loaded, std::int64_t k) {
      for (int i = 0; i < width; ++i) value[i] = here.fold[i].add(value[i], loaded, i, k);
    };
    std::int64_t k = row() * length + lane;
    std::int64_t offset = k * columns + first;
    const std::int64_t step = lanes * columns;
    for (; k + (k_unrolled - 1) * lanes < end; k += k_unrolled * lanes) {
      Row loaded[k_unrolled];
      for (int u = 0; u < k_unrolled; ++u, offset += step) {
        loaded[u] = fold.template load<width>(offset);
      }
      for (int u = 0; u < k_unrolled; ++u) add(loaded[u], k + u * lanes);
    }
    for (; k < end; k += lanes, offset += step) add(fold.template load<width>(offset), k);
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

template <class Fold>
__global__ void merge_kernel(Fold fold, FoldParts<Fold> parts, std::int64_t outputs) {
  for (std::int64_t o = thread_of_grid(); o < outputs; o += threads_of_grid()) {
    prepared(fold, o).finish(o, parts.merge(fold, outputs, o, 0, 1));
  }
}

/// `workspace` has plan.workspace_bytes<Fold>() bytes.
template <class Fold>
void run_fold(Stream stream, const Fold& fold, const FoldPlan& plan, void* workspace, Tickets all) {
  const std::int64_t outputs = plan.kept.elements;
  FoldParts<Fold> parts{nullptr, nullptr, plan.parts};
  const auto run = [&](auto kernel, Grid grid, const auto&... arguments) {
    grid.rows = plan.parts;
    if (plan.parts > 1) {
      parts.values = static_cast<typename Fold::Value*>(workspace);
      if (grid.blocks <= Tickets::k_count) parts.tickets = all.data;
      grid.cooperates = grid.cooperates || parts.tickets != nullptr;
    }
    launch(kernel, grid, stream, fold, arguments..., plan.length, parts);
  };
  if constexpr (requires { Fold::k_width; }) {
    const auto columns = [&]<int width>(std::integral_constant<int, width>) {
      unsigned packs = FoldPlan::k_column_packs;
      while (packs > 1 && packs / 2 * width >= outputs) packs /= 2;
      const std::int64_t of_block = std::int64_t{packs} * width;
      run(fold_columns_kernel<width, Fold>,
          {.blocks = (outputs + of_block - 1) / of_block,
           .threads = FoldPlan::k_threads,
           .cooperates = true},
          outputs,
          plan.reduced.elements,
          packs);
    };
    if (plan.columns && fold.packed() && outputs % Fold::k_width == 0) {
      columns(std::integral_constant<int, Fold::k_width>{});
    } else if (plan.columns) {
      columns(std::integral_constant<int, 1>{});
    }
  }
  if constexpr (requires { &Fold::take; }) {
    if (plan.along) {
      run(fold_along_kernel<Fold>,
          {.blocks = outputs, .threads = plan.threads, .cooperates = true},
          plan.kept,
          plan.reduced);
    } else if (!plan.columns) {
      run(fold_across_kernel<Fold>, grid_of(outputs, 128), plan.kept, plan.reduced);
    }
  }
  if (plan.parts == 1 || parts.tickets != nullptr) return;
  launch(merge_kernel<Fold>, grid_of(outputs, 128), stream, fold, parts, outputs);
}

}  // namespace halfstep::backend::cuda::kernels
