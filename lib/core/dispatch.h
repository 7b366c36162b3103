#pragma once
// From a DType to a C++ type: dispatch_floating(dtype, [&]<class T>(Type<T>) { ... }).

#include <cstdint>

#include "core/compute.h"
#include "core/error.h"

namespace halfstep {

/// Calls `f` with the storage type of a floating dtype (float, double, float16, bfloat16).
/// Errors: InternalError for any other dtype.
template <class F>
decltype(auto) dispatch_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(Type<float>{});
    case DType::float64:
      return f(Type<double>{});
    case DType::float16:
      return f(Type<float16>{});
    case DType::bfloat16:
      return f(Type<bfloat16>{});
    default:
      break;
  }
  throw InternalError(fmt::format("{} is not a floating dtype", name(dtype)),
                      std::source_location::current());
}

/// Calls `f` with the storage type of a numeric dtype halfstep computes with.
/// Errors: InternalError for any other dtype.
template <class F>
decltype(auto) dispatch_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    default:
      return dispatch_floating(dtype, f);
  }
}

/// The same for a numeric dtype or bool.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  return dtype == DType::boolean ? f(Type<bool>{}) : dispatch_number(dtype, f);
}

}  // namespace halfstep
