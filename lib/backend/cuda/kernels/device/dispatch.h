#pragma once
// From a DType to a C++ type, like core/dispatch.h, whose error messages nvcc cannot compile.

#include <cstdint>
#include <type_traits>

#include "backend/cuda/kernels/stream.h"
#include "backend/functions/function.h"
#include "core/compute.h"

namespace halfstep::backend::cuda::kernels {

/// Errors: LaunchError.
[[noreturn]] inline void refuse(DType dtype) {
  throw LaunchError("no kernel computes with " + std::string(name(dtype)));
}

template <class F>
void dispatch_floating(DType dtype, F&& f) {
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
      refuse(dtype);
  }
}

/// float32, float16 and bfloat16: the dtypes of matmuls and convolutions.
template <class F>
void dispatch_matmul(DType dtype, F&& f) {
  if (dtype == DType::float64) refuse(dtype);
  dispatch_floating(dtype, [&]<class T>(Type<T> type) {
    if constexpr (!std::is_same_v<T, double>) f(type);
  });
}

template <class F>
void dispatch_integer(DType dtype, F&& f) {
  switch (dtype) {
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    default:
      refuse(dtype);
  }
}

/// The dtypes of labels and indices.
template <class F>
void dispatch_index(DType dtype, F&& f) {
  if (dtype == DType::int64) return f(Type<std::int64_t>{});
  if (dtype == DType::int32) return f(Type<std::int32_t>{});
  refuse(dtype);
}

/// Floating and integer dtypes.
template <class F>
void dispatch_number(DType dtype, F&& f) {
  if (is_floating(dtype)) return dispatch_floating(dtype, f);
  dispatch_integer(dtype, f);
}

/// Numeric dtypes and bool.
template <class F>
void dispatch_any(DType dtype, F&& f) {
  if (dtype == DType::boolean) return f(Type<bool>{});
  dispatch_number(dtype, f);
}

/// The dtypes of a scalar function's operands.
template <functions::Domain domain, class F>
void dispatch_domain(DType dtype, F&& f) {
  if constexpr (domain == functions::Domain::floating) {
    dispatch_floating(dtype, f);
  } else if constexpr (domain == functions::Domain::number) {
    dispatch_number(dtype, f);
  } else if constexpr (domain == functions::Domain::any) {
    dispatch_any(dtype, f);
  } else {
    if (dtype != DType::boolean) refuse(dtype);
    f(Type<bool>{});
  }
}

/// An unsigned type of the element's size.
template <class F>
void dispatch_word(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(Type<std::uint8_t>{});
    case 2:
      return f(Type<std::uint16_t>{});
    case 4:
      return f(Type<std::uint32_t>{});
    case 8:
      return f(Type<std::uint64_t>{});
    default:
      throw LaunchError("no kernel moves elements of " + std::to_string(bytes) + " bytes");
  }
}

}  // namespace halfstep::backend::cuda::kernels
