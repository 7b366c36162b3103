#pragma once
// Random operands for matmuls and convolutions, rounded to their dtype.

#include <cstdint>
#include <string_view>

#include "core/philox.h"
#include "core/tensor.h"

namespace halfstep::testing {

/// Uniform numbers in [-1, 1), rounded to `dtype`.
Tensor random_tensor(DType dtype, std::int64_t elements, RandomStream& random);

/// A tensor in which every element is NaN, so that unwritten elements are detected.
Tensor poisoned_tensor(DType dtype, std::int64_t elements);

/// One of `choices`.
template <class T, std::size_t N>
T pick(RandomStream& random, const T (&choices)[N]) {
  return choices[random.below(N)];
}

}  // namespace halfstep::testing
