#pragma once
// Conventions of all entry points of halfstep's own kernels.
//
// An entry point enqueues work on a stream and returns without blocking: pointers are device
// addresses, and values that a step computes (rates, ordinals, flags) are read on the device.
// Pointers are aligned to their element; alignment to 16 bytes enables the fast paths. Outputs may
// alias an input only where the header says so. Values are loaded to float (double for float64),
// computed in it and rounded once, to nearest even; sums have a fixed order, so results are
// bit-reproducible. Errors: LaunchError for a dtype without a kernel, and where the launch
// fails.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace halfstep::backend::cuda::kernels {

/// A stream of the device: cudaStream_t without its header.
using Stream = void*;

/// The tickets of a stream: numbers in device memory that are 0 between launches. Blocks count in
/// them those that are done, so that the last one can do the work that needs the results of all.
struct Tickets {
  static constexpr std::int64_t k_count = 4096;

  unsigned* data = nullptr;
};

class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace halfstep::backend::cuda::kernels
