#pragma once
// The launch configuration of a kernel.

#include <algorithm>
#include <cstdint>

namespace halfstep::backend::cuda::kernels {

struct Grid {
  std::int64_t blocks = 1;
  std::int64_t rows = 1;    ///< blockIdx.y is in [0, rows); at most 65535
  unsigned threads = 256;   ///< per block; a multiple of the warp's 32
  bool cooperates = false;  ///< its threads shuffle or synchronize
};

/// One thread per item for `n` items, up to a number of blocks beyond which threads loop.
inline Grid grid_of(std::int64_t n, unsigned threads = 256) {
  constexpr std::int64_t k_max_blocks = 1 << 14;
  return {.blocks = std::min((n + threads - 1) / threads, k_max_blocks), .threads = threads};
}

}  // namespace halfstep::backend::cuda::kernels
