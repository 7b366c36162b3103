#pragma once
// What all entry points of the own kernels have in common.
//
// An entry point enqueues work on a stream and returns: pointers are device addresses, numbers that
// a step computes (rates, ordinals, flags) are read on the device. Pointers are aligned to their
// element; at 16 bytes or more the fast paths are taken. Outputs may be the memory of an input only
// where the header says so. Values are loaded to float (double for float64), computed with in it
// and rounded once, to nearest even; sums have a fixed order, so the same input gives the same
// bits. Errors: InternalError for a dtype the kernel has no code for, LaunchError when the device
// takes no launch.

#include <stdexcept>
#include <string>

namespace halfstep::backend::cuda::kernels {

/// A stream of the device: cudaStream_t without its header.
using Stream = void*;

class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace halfstep::backend::cuda::kernels
