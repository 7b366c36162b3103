#pragma once
// Joint iteration over the elements of several tensors.

#include <array>
#include <cstdint>
#include <limits>

#include "backend/cuda/kernels/shim/compat.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

/// Iterates over N tensors along the elements of one shape in row-major order. Adjacent axes with
/// compatible strides in all tensors are merged. Errors: LaunchError for 2^32 elements and more
/// along several axes.
template <int N>
struct Walk {
  int rank = 0;
  std::int64_t elements = 1;
  std::int64_t extent[Shape::k_max_rank] = {};
  std::int64_t stride[N][Shape::k_max_rank] = {};

  Walk() = default;
  Walk(const Shape& shape, const std::array<Strides, N>& strides) : elements(shape.elements()) {
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      bool joins = rank > 0;
      for (int n = 0; n < N && joins; ++n) {
        joins = stride[n][rank - 1] == strides[static_cast<std::size_t>(n)][axis] * shape[axis];
      }
      if (!joins) extent[rank++] = 1;
      extent[rank - 1] *= shape[axis];
      for (int n = 0; n < N; ++n) stride[n][rank - 1] = strides[static_cast<std::size_t>(n)][axis];
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
      for (int n = 0; n < N; ++n) offsets.of[n] = i * stride[n][0];
      return offsets;
    }
    // A 32-bit division takes a fraction of the time and code of a 64-bit one.
    auto rest = static_cast<std::uint32_t>(i);
    HALFSTEP_ROLLED
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto size = static_cast<std::uint32_t>(extent[axis]);
      const std::int64_t coordinate = rest % size;
      rest /= size;
      for (int n = 0; n < N; ++n) offsets.of[n] += coordinate * stride[n][axis];
    }
    return offsets;
  }
};

}  // namespace halfstep::backend::cuda::kernels
