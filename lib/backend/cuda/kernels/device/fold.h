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
//   void visit(pack, offset)                     optional: called once for a pack, before add()

#include "backend/cuda/kernels/device/fold_columns.h"
#include "backend/cuda/kernels/device/fold_parts.h"
#include "backend/cuda/kernels/device/fold_plan.h"

namespace halfstep::backend::cuda::kernels {

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
      // Short sums need no more threads than have eight terms each.
      unsigned lanes = FoldPlan::k_threads / packs;
      while (packs * lanes > 32 && lanes * 8 > plan.reduced.elements) lanes /= 2;
      const std::int64_t of_block = std::int64_t{packs} * width;
      run(fold_columns_kernel<width, Fold>,
          {.blocks = (outputs + of_block - 1) / of_block,
           .threads = packs * lanes,
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
