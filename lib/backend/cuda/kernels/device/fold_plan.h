#pragma once
// The partition of a reduction: long ones are split into parts, for more threads and shorter sums.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/device/walk.h"

namespace halfstep::backend::cuda::kernels {

struct FoldPlan {
  Walk<1> kept;             ///< the offset of each output's first term
  Walk<1> reduced;          ///< the offset of a term from the first
  bool along = false;       ///< one block per output and part; else one thread
  unsigned threads = 256;   ///< per block
  std::int64_t length = 1;  ///< terms of a part
  std::int64_t parts = 1;   ///< per output

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
  }

  template <class Fold>
  std::size_t workspace_bytes() const {
    if (parts == 1) return 0;
    return static_cast<std::size_t>(parts * kept.elements) * sizeof(typename Fold::Value);
  }
};

/// The plan that sums each column of rows [terms, outputs].
inline FoldPlan plan_columns(std::int64_t terms, std::int64_t outputs) {
  return {Walk<1>(Shape{outputs}, {Steps{1}}), Walk<1>(Shape{terms}, {Steps{outputs}})};
}

}  // namespace halfstep::backend::cuda::kernels
