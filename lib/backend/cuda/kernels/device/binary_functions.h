#pragma once
// The formulas of the elementwise ops of two operands, in the compute type. Comparisons are written
// so that NaN propagates.

#include <cmath>
#include <type_traits>

#include "backend/cuda/kernels/device/unary_functions.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/shim/compat.h"

namespace halfstep::backend::cuda::kernels {

/// Quotient truncated towards zero; 0 where an integer quotient is undefined.
template <class C>
__device__ inline C divide(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<C>) {
      if (y == -1) return static_cast<C>(0U - static_cast<std::make_unsigned_t<C>>(x));
    }
  }
  return static_cast<C>(x / y);
}

template <class C>
__device__ inline C floor_divide(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    const C q = divide(x, y);
    const bool inexact = y != 0 && static_cast<C>(q * y) != x;
    return static_cast<C>(inexact && (negative(x) != negative(y)) ? q - 1 : q);
  } else {
    return std::floor(x / y);
  }
}

/// x^y; for integers by squaring, modulo 2^n, and 0 where a negative exponent gives a fraction.
template <class C>
__device__ inline C power(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    if (negative(y)) {
      const C sign = static_cast<C>(y % 2 == 0 ? 1 : -1);
      return x == 1 ? C(1) : (x == static_cast<C>(-1) ? sign : C(0));
    }
    auto base = static_cast<std::uint64_t>(x);
    std::uint64_t result = 1;
    for (auto n = static_cast<std::uint64_t>(y); n != 0; n /= 2) {
      if (n % 2 == 1) result *= base;
      base *= base;
    }
    return static_cast<C>(result);
  } else {
    return std::pow(x, y);
  }
}

template <Binary function, class C>
__device__ inline C number_function(C a, C b) {
  if constexpr (function == Binary::add) {
    return static_cast<C>(a + b);
  } else if constexpr (function == Binary::floor_div) {
    return floor_divide(a, b);
  } else if constexpr (function == Binary::maximum) {
    return a > b || a != a ? a : b;
  } else if constexpr (function == Binary::minimum) {
    return a < b || a != a ? a : b;
  } else if constexpr (function == Binary::mul) {
    return static_cast<C>(a * b);
  } else if constexpr (function == Binary::pow) {
    return power(a, b);
  } else if constexpr (function == Binary::real_div) {
    return divide(a, b);
  } else if constexpr (function == Binary::relu6_grad) {
    return b > 0 && b < 6 ? a : C(0);
  } else if constexpr (function == Binary::relu_grad) {
    return b > 0 ? a : C(0);
  } else if constexpr (function == Binary::squared_difference) {
    return static_cast<C>((a - b) * (a - b));
  } else {
    static_assert(function == Binary::sub);
    return static_cast<C>(a - b);
  }
}

template <Binary function, class C>
__device__ inline C floating_function(C a, C b, C alpha) {
  if constexpr (function == Binary::div_no_nan) {
    return b == 0 ? C(0) : a / b;
  } else if constexpr (function == Binary::elu_grad) {
    return b < 0 ? (b + C(1)) * a : a;
  } else if constexpr (function == Binary::leaky_relu_grad) {
    return b > 0 ? a : alpha * a;
  } else if constexpr (function == Binary::reciprocal_grad) {
    return -b * a * a;
  } else if constexpr (function == Binary::rsqrt_grad) {
    return b * (a * a * a) * C(-0.5);
  } else if constexpr (function == Binary::selu_grad) {
    return b < 0 ? a * (b + C(k_selu_scale_alpha)) : a * C(k_selu_scale);
  } else if constexpr (function == Binary::sigmoid_grad) {
    return b * a * (C(1) - a);
  } else if constexpr (function == Binary::softplus_grad) {
    return a * sigmoid(b);
  } else if constexpr (function == Binary::softsign_grad) {
    const C d = C(1) + std::abs(b);
    return a / (d * d);
  } else if constexpr (function == Binary::sqrt_grad) {
    return b * C(0.5) / a;
  } else if constexpr (function == Binary::tanh_grad) {
    return b * (C(1) - a * a);
  } else {
    return number_function<function>(a, b);
  }
}

}  // namespace halfstep::backend::cuda::kernels
