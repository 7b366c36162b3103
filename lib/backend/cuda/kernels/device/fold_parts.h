#pragma once
// Folding of terms by a thread and by a block, and the parts of outputs that several blocks fold.

#include "backend/cuda/kernels/device/element.h"

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

}  // namespace halfstep::backend::cuda::kernels
