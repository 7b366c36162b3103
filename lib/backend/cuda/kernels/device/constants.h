#pragma once
// From an enum value known at run time to a compile-time constant.

#include <type_traits>

namespace halfstep::backend::cuda::kernels {

template <auto value>
using Constant = std::integral_constant<decltype(value), value>;

/// Calls f(Constant<v>{}) for the v of `values` equal to `value`; false when none is.
template <auto... values, class V, class F>
bool dispatch_value(V value, F&& f) {
  return ((value == values ? (f(Constant<values>{}), true) : false) || ...);
}

}  // namespace halfstep::backend::cuda::kernels
