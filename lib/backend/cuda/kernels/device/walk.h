#pragma once
// Joint iteration over the elements of several tensors.

#include <array>
#include <cstdint>
#include <limits>

#include "backend/cuda/kernels/shim/compat.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

/// Strides in elements along each axis of a shape.
using Steps = std::array<std::int64_t, Shape::k_max_rank>;

/// The strides of a dense row-major tensor.
inline Steps dense_steps(const Shape& shape) {
  Steps steps{};
  std::int64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    steps[axis] = step;
    step *= shape[axis];
  }
  return steps;
}

/// The strides of `operand` broadcast to `shape`: 0 along broadcast axes.
inline Steps broadcast_steps(const Shape& operand, const Shape& shape) {
  const Steps dense = dense_steps(operand);
  const std::size_t lead = shape.rank() - operand.rank();
  Steps steps{};
  for (std::size_t axis = 0; axis < operand.rank(); ++axis) {
    steps[lead + axis] = operand[axis] == shape[lead + axis] ? dense[axis] : 0;
  }
  return steps;
}

/// Iterates over N tensors along the elements of one shape in row-major order. Adjacent axes with
/// compatible strides in all tensors are merged. Errors: LaunchError for 2^32 elements and more
/// along several axes.
template <int N>
struct Walk {
  int rank = 0;
  std::int64_t elements = 1;
  std::int64_t extent[Shape::k_max_rank] = {};
  std::int64_t step[N][Shape::k_max_rank] = {};

  Walk() = default;
  Walk(const Shape& shape, const std::array<Steps, N>& steps) : elements(shape.elements()) {
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      bool joins = rank > 0;
      for (int n = 0; n < N && joins; ++n) {
        joins = step[n][rank - 1] == steps[static_cast<std::size_t>(n)][axis] * shape[axis];
      }
      if (!joins) extent[rank++] = 1;
      extent[rank - 1] *= shape[axis];
      for (int n = 0; n < N; ++n) step[n][rank - 1] = steps[static_cast<std::size_t>(n)][axis];
    }
    if (rank > 1 && elements > std::numeric_limits<std::uint32_t>::max()) {
      throw LaunchError("no kernel walks through " + std::to_string(elements) + " elements");
    }
  }

  /// The offset of element `i` in each tensor.
  struct Offsets {
    std::int64_t of[N];
  };
  __device__ Offsets at(std::int64_t i) const {
    Offsets offsets{};
    if (rank <= 1) {
      for (int n = 0; n < N; ++n) offsets.of[n] = i * step[n][0];
      return offsets;
    }
    // A 32-bit division takes a fraction of the time and code of a 64-bit one.
    auto rest = static_cast<std::uint32_t>(i);
    HALFSTEP_ROLLED
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto size = static_cast<std::uint32_t>(extent[axis]);
      const std::int64_t place = rest % size;
      rest /= size;
      for (int n = 0; n < N; ++n) offsets.of[n] += place * step[n][axis];
    }
    return offsets;
  }
};

}  // namespace halfstep::backend::cuda::kernels
