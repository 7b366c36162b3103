#pragma once
// Offsets of buffers in a kernel's workspace, and rounding up to multiples.

#include <cstdint>

#include "core/tensor.h"

namespace halfstep::backend::cpu {

/// x / y rounded up, and x rounded up to a multiple of y.
constexpr std::int64_t divide_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
constexpr std::int64_t round_up(std::int64_t x, std::int64_t y) { return divide_up(x, y) * y; }

/// Assigns offsets of consecutive buffers, aligned to cache lines.
class WorkspaceLayout {
 public:
  std::int64_t reserve(std::int64_t bytes) {
    const std::int64_t offset = bytes_;
    bytes_ += round_up(bytes, AlignedBuffer::k_alignment);
    return offset;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace halfstep::backend::cpu
