#pragma once
// One arena for all values of a step, with offsets assigned by lifetime before the first step.

#include <cstddef>
#include <span>
#include <vector>

namespace halfstep::plan {

/// `bytes` rounded up to a multiple of `alignment`.
constexpr std::size_t aligned(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A block that is live from launch `first` to launch `last`, both included.
struct Lifetime {
  int first = 0;
  int last = 0;
  std::size_t bytes = 0;
};

struct Layout {
  std::vector<std::size_t> offsets;  ///< per block, multiples of the alignment
  std::size_t bytes = 0;             ///< of the arena
};

/// Assigns offsets so that blocks live at the same time never overlap: largest first, each at the
/// lowest offset that fits. `Layout::bytes` is at least the peak of live bytes.
Layout assign_offsets_by_lifetime(std::span<const Lifetime> blocks, std::size_t alignment = 64);

}  // namespace halfstep::plan
