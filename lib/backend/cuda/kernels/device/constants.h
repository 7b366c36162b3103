#pragma once
// From a value of an enum that is known at run time to one that is known to the compiler.

#include <type_traits>

namespace halfstep::backend::cuda::kernels {

template <auto value>
using Constant = std::integral_constant<decltype(value), value>;

/// Calls f(Constant<v>{}) for that v of `values` which is `value`; false when none is.
template <auto... values, class V, class F>
bool dispatch_value(V value, F&& f) {
  return ((value == values ? (f(Constant<values>{}), true) : false) || ...);
}

}  // namespace halfstep::backend::cuda::kernels
