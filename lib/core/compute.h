#pragma once
// The compute type of a storage type.

#include "core/half.h"

namespace halfstep {

/// A type passed as a value.
template <class T>
struct Type {
  using type = T;
};

/// The type in which kernels do arithmetic on T: double for double, float for the other floating
/// types, T itself otherwise.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<float16> {
  using type = float;
};
template <>
struct ComputeType<bfloat16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeType<T>::type;

}  // namespace halfstep
