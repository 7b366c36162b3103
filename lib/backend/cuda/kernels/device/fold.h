#pragma once
// Reductions: the terms of each output are folded in a fixed order. Long reductions are split into
// parts, for more threads and shorter sums, and the parts are merged.
//
// A Fold has a type Value and
//   Value first()                                the neutral element
//   Value take(Value, offset, k, output)         folds the k-th term, at `offset`
//   Value merge(Value, Value)                    combines two parts
//   void finish(output, Value)                   writes the result

#include <algorithm>
#include <cstdint>

#include "backend/cuda/kernels/device/element.h"
#include "backend/cuda/kernels/device/walk.h"

namespace halfstep::backend::cuda::kernels {

/// The partition of a reduction.
struct FoldPlan {
  Walk<1> kept;               ///< the offset of each output's first term
  Walk<1> reduced;            ///< the offset of a term from the first
  bool along = false;         ///< one block per output and part; else one thread
  unsigned threads = 256;     ///< per block
  std::int64_t length = 1;    ///< terms of a part
  std::int64_t parts = 1;     ///< per output
  bool merges_along = false;  ///< `along` of the merge

  FoldPlan(const Walk<1>& kept_walk, const Walk<1>& reduced_walk)
      : kept(kept_walk), reduced(reduced_walk) {
    const std::int64_t outputs = std::max<std::int64_t>(kept.elements, 1);
    const std::int64_t terms = std::max<std::int64_t>(reduced.elements, 1);
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    along = reduced.rank > 0 && reduced.step[0][reduced.rank - 1] == 1 && terms >= 64;
    if (along) {
      while (threads > 32 && threads * 2 > terms) threads /= 2;
      parts = std::min(ceil_div(terms, 4096), std::max<std::int64_t>(512 / outputs, 1));
    } else {
      // Parts of 64 to 256 terms: enough threads, and short sums have small rounding errors.
      const std::int64_t wanted = ceil_div(1 << 16, outputs);
      parts = std::clamp(wanted, ceil_div(terms, 256), ceil_div(terms, 64));
    }
    parts = std::min<std::int64_t>(parts, 65'535);
    length = ceil_div(terms, parts);
    parts = ceil_div(terms, length);
    merges_along = outputs < 256 && parts > 8;
  }

  template <class Fold>
  std::size_t workspace_bytes() const {
    if (parts == 1) return 0;
    return static_cast<std::size_t>(parts * kept.elements) * sizeof(typename Fold::Value);
  }
};

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
    if (thread() < half) values[thread()] = fold.merge(values[thread()], values[thread() + half]);
  }
  return values[0];
}

/// Finishes the output if it has one part, else stores the part.
template <class Fold>
__device__ inline void give(const Fold& fold,
                            typename Fold::Value* parts,
                            std::int64_t outputs,
                            std::int64_t output,
                            const typename Fold::Value& value) {
  if (parts == nullptr) {
    fold.finish(output, value);
  } else {
    parts[row() * outputs + output] = value;
  }
}

template <class Fold>
__global__ void fold_across_kernel(
    Fold fold, Walk<1> kept, Walk<1> reduced, std::int64_t length, typename Fold::Value* parts) {
  const std::int64_t begin = row() * length;
  const std::int64_t end = begin + length < reduced.elements ? begin + length : reduced.elements;
  for (std::int64_t o = thread_of_grid(); o < kept.elements; o += threads_of_grid()) {
    const std::int64_t base = kept.at(o).of[0];
    const auto take = [&](const typename Fold::Value& value, std::int64_t k) {
      return fold.take(value, base + reduced.at(k).of[0], k, o);
    };
    give(fold, parts, kept.elements, o, fold_terms(fold, begin, end, 1, take));
  }
}

template <class Fold>
__global__ void fold_along_kernel(
    Fold fold, Walk<1> kept, Walk<1> reduced, std::int64_t length, typename Fold::Value* parts) {
  const std::int64_t begin = row() * length;
  const std::int64_t end = begin + length < reduced.elements ? begin + length : reduced.elements;
  const std::int64_t base = kept.at(block()).of[0];
  const auto take = [&](const typename Fold::Value& value, std::int64_t k) {
    return fold.take(value, base + reduced.at(k).of[0], k, block());
  };
  const auto value = merge_block(fold, fold_terms(fold, begin + thread(), end, threads(), take));
  if (thread() == 0) give(fold, parts, kept.elements, block(), value);
}

template <class Fold>
__global__ void merge_across_kernel(Fold fold,
                                    const typename Fold::Value* parts,
                                    std::int64_t outputs,
                                    std::int64_t count) {
  for (std::int64_t o = thread_of_grid(); o < outputs; o += threads_of_grid()) {
    const auto take = [&](const typename Fold::Value& value, std::int64_t k) {
      return fold.merge(value, parts[k * outputs + o]);
    };
    fold.finish(o, fold_terms(fold, 0, count, 1, take));
  }
}

template <class Fold>
__global__ void merge_along_kernel(Fold fold,
                                   const typename Fold::Value* parts,
                                   std::int64_t outputs,
                                   std::int64_t count) {
  const auto take = [&](const typename Fold::Value& value, std::int64_t k) {
    return fold.merge(value, parts[k * outputs + block()]);
  };
  const auto value = merge_block(fold, fold_terms(fold, thread(), count, threads(), take));
  if (thread() == 0) fold.finish(block(), value);
}

/// `workspace` has plan.workspace_bytes<Fold>() bytes.
template <class Fold>
void run_fold(Stream stream, const Fold& fold, const FoldPlan& plan, void* workspace) {
  const std::int64_t outputs = plan.kept.elements;
  auto* parts = plan.parts == 1 ? nullptr : static_cast<typename Fold::Value*>(workspace);
  Grid grid = grid_of(outputs, 128);
  if (plan.along) grid = {.blocks = outputs, .threads = plan.threads, .cooperates = true};
  grid.rows = plan.parts;
  launch(plan.along ? fold_along_kernel<Fold> : fold_across_kernel<Fold>,
         grid,
         stream,
         fold,
         plan.kept,
         plan.reduced,
         plan.length,
         parts);
  if (parts == nullptr) return;
  grid = grid_of(outputs, 128);
  if (plan.merges_along) grid = {.blocks = outputs, .threads = 64, .cooperates = true};
  launch(plan.merges_along ? merge_along_kernel<Fold> : merge_across_kernel<Fold>,
         grid,
         stream,
         fold,
         static_cast<const typename Fold::Value*>(parts),
         outputs,
         plan.parts);
}

/// The plan that sums each column of rows [terms, outputs].
inline FoldPlan plan_columns(std::int64_t terms, std::int64_t outputs) {
  return {Walk<1>(Shape{outputs}, {Steps{1}}), Walk<1>(Shape{terms}, {Steps{outputs}})};
}

}  // namespace halfstep::backend::cuda::kernels
