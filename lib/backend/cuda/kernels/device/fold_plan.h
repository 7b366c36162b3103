#pragma once
// The partition of a reduction: long ones are split into parts, for more threads and shorter sums.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/device/walk.h"

namespace halfstep::backend::cuda::kernels {

struct FoldPlan {
  static constexpr unsigned k_threads = 256;     ///< at most, per block
  static constexpr unsigned k_column_packs = 8;  ///< at most, of a block that folds columns

  Walk<1> kept;                  ///< the offset of each output's first term
  Walk<1> reduced;               ///< the offset of a term from the first
  bool columns = false;          ///< the outputs are the columns of rows
  bool along = false;            ///< one block per output and part; else one thread
  unsigned threads = k_threads;  ///< per block
  std::int64_t length = 1;       ///< terms of a part
  std::int64_t parts = 1;        ///< per output

  FoldPlan(const Walk<1>& kept_walk, const Walk<1>& reduced_walk)
      : kept(kept_walk), reduced(reduced_walk) {
    const std::int64_t outputs = std::max<std::int64_t>(kept.elements, 1);
    const std::int64_t terms = std::max<std::int64_t>(reduced.elements, 1);
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    along = reduced.rank > 0 && reduced.stride[0][reduced.rank - 1] == 1 && terms >= 64;
    if (along) {
      while (threads > 32 && threads * 2 > terms) threads /= 2;
      parts = std::min(ceil_div(terms, 4096), std::max<std::int64_t>(512 / outputs, 1));
    } else {
      // Parts of 64 to 256 terms: enough threads, and short sums have small rounding errors.
      const std::int64_t wanted = ceil_div(1 << 16, outputs);
      parts = std::clamp(wanted, ceil_div(terms, 256), ceil_div(terms, 64));
    }
    divide_into(std::min<std::int64_t>(parts, 65'535));
  }

  /// Sums of each column of rows [terms, outputs], for a Fold with packs. About 512 blocks, four
  /// for each multiprocessor of an H100, load enough bytes at a time for its memory; a part has at
  /// least 128 rows, and no output has more than 256 parts to merge.
  FoldPlan(std::int64_t terms, std::int64_t outputs)
      : kept(Shape{outputs}, {Strides{1}}),
        reduced(Shape{terms}, {Strides{outputs}}),
        columns(true) {
    constexpr std::int64_t k_blocks = 512, k_columns = 64, k_rows = 128, k_max_parts = 256;
    const std::int64_t wanted = k_blocks / std::max<std::int64_t>(outputs / k_columns, 1);
    divide_into(std::clamp<std::int64_t>(
        wanted, 1, std::clamp(terms / k_rows, std::int64_t{1}, k_max_parts)));
  }

  template <class Fold>
  std::size_t workspace_bytes() const {
    if (parts == 1) return 0;
    return static_cast<std::size_t>(parts * kept.elements) * sizeof(typename Fold::Value);
  }

 private:
  void divide_into(std::int64_t count) {
    const std::int64_t terms = std::max<std::int64_t>(reduced.elements, 1);
    length = (terms + count - 1) / count;
    parts = (terms + length - 1) / length;
  }
};

}  // namespace halfstep::backend::cuda::kernels
