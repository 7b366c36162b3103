#pragma once
// How many threads run a kernel.

#include <algorithm>
#include <cstdint>

namespace halfstep::backend::cuda::kernels {

struct Grid {
  std::int64_t blocks = 1;
  std::int64_t rows = 1;    ///< blocks of every number in [0, blocks), at most 65535
  unsigned threads = 256;   ///< of a block; a multiple of the warp's 32
  bool cooperates = false;  ///< its threads exchange values or wait for each other
};

/// Threads enough for `n` pieces of work, up to a number beyond which each takes several.
inline Grid grid_of(std::int64_t n, unsigned threads = 256) {
  constexpr std::int64_t k_max_blocks = 1 << 14;
  return {.blocks = std::min((n + threads - 1) / threads, k_max_blocks), .threads = threads};
}

}  // namespace halfstep::backend::cuda::kernels
