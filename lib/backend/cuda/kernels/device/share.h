#pragma once
// Launches of several tensors, each of which has consecutive blocks of the grid.

#include "backend/cuda/kernels/shim/compat.h"

namespace halfstep::backend::cuda::kernels {

/// The tensor of the running block, and the running thread among the threads of its blocks: `first`
/// of `step`.
struct Share {
  int tensor;
  std::int64_t first, step;
};

/// The blocks of a tensor begin with its `first_block`; those of the last one end the grid.
template <class Tensor>
__device__ inline Share share_of(const Tensor* tensors, int count) {
  int n = 0;
  while (n + 1 < count && tensors[n + 1].first_block <= block()) ++n;
  const std::int64_t begin = tensors[n].first_block;
  const std::int64_t end = n + 1 < count ? std::int64_t{tensors[n + 1].first_block} : blocks();
  return {n, (block() - begin) * threads() + thread(), (end - begin) * threads()};
}

}  // namespace halfstep::backend::cuda::kernels
