#pragma once
// The kernels of this folder's files.

#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/vector/loops.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::vector {

/// The loop of an elementwise op, or null when there is none.
const MapRow* find_map(const Loops& loops, std::string_view op);

/// Elements [first, first + n) of the random tensor of (seed, stream) to y.
void uniform_elements(const Loops& loops,
                      float* y,
                      std::uint64_t seed,
                      std::uint64_t stream,
                      std::int64_t first,
                      std::int64_t n);

std::vector<Kernel> elementwise_kernels();
std::vector<Kernel> finite_kernels();
std::vector<Kernel> layer_norm_kernels();
std::vector<Kernel> map_kernels();
std::vector<Kernel> norm_kernels();
std::vector<Kernel> pool_kernels();
std::vector<Kernel> random_kernels();
std::vector<Kernel> reduce_kernels();
std::vector<Kernel> softmax_kernels();
std::vector<Kernel> update_kernels();

}  // namespace halfstep::backend::cpu::vector
