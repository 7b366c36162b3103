#pragma once
// The kernels of this folder, and loops that other folders use.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/vector/loops.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::vector {

/// The entry of an op in a table of loops, or null.
template <class Entry>
const Entry* find_entry(const Entries<Entry>& entries, std::string_view op) {
  const auto* entry = std::ranges::find_if(entries, [&](const Entry& e) { return op == e.op; });
  return entry == entries.end() ? nullptr : entry;
}

/// Writes elements [first, first + n) of the uniform random tensor of (seed, stream) to y.
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
