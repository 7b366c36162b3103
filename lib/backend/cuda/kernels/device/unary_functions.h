#pragma once
// The formulas of the elementwise ops of one operand, in the compute type. Comparisons are written
// so that NaN propagates.

#include <cmath>
#include <type_traits>

#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/shim/compat.h"

namespace halfstep::backend::cuda::kernels {

// Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
constexpr double k_selu_scale = 1.0507009873554804934193349852946;
constexpr double k_selu_scale_alpha = 1.7580993408473768599402175208123;

/// x < 0, without a compiler warning for unsigned x.
template <class C>
__device__ inline bool negative(C x) {
  if constexpr (std::is_unsigned_v<C>) {
    return false;
  } else {
    return x < C(0);
  }
}

/// 1 / (1 + exp(-x)) without overflow on either side.
template <class C>
__device__ inline C sigmoid(C x) {
  const C e = std::exp(x < 0 ? x : -x);
  return (x < 0 ? e : C(1)) / (C(1) + e);
}

/// Functions for all numeric types; the others are instantiated for floating C only.
template <Unary function, class C>
__device__ inline C number_function(C x) {
  if constexpr (function == Unary::abs) {
    return static_cast<C>(negative(x) ? -x : (x == 0 ? x * x : x));
  } else if constexpr (function == Unary::neg) {
    return static_cast<C>(-x);
  } else if constexpr (function == Unary::ones_like) {
    return C(1);
  } else if constexpr (function == Unary::reciprocal) {
    // Integer 1/0 is undefined; it must not trap.
    if constexpr (std::is_integral_v<C>) return static_cast<C>(x == 0 ? 0 : 1 / x);
    return static_cast<C>(C(1) / x);
  } else if constexpr (function == Unary::relu) {
    return negative(x) ? C(0) : x;
  } else if constexpr (function == Unary::relu6) {
    return negative(x) ? C(0) : (x > 6 ? C(6) : x);
  } else if constexpr (function == Unary::round) {
    // To nearest, ties to even.
    if constexpr (std::is_integral_v<C>) {
      return x;
    } else {
      return std::nearbyint(x);
    }
  } else if constexpr (function == Unary::sign) {
    return x > 0 ? C(1) : (negative(x) ? static_cast<C>(-1) : x);
  } else if constexpr (function == Unary::square) {
    return static_cast<C>(x * x);
  } else {
    static_assert(function == Unary::zeros_like);
    return C(0);
  }
}

template <Unary function, class C>
__device__ inline C floating_function(C x, C alpha) {
  if constexpr (function == Unary::ceil) {
    return std::ceil(x);
  } else if constexpr (function == Unary::elu) {
    return x < 0 ? std::expm1(x) : x;
  } else if constexpr (function == Unary::erf) {
    return std::erf(x);
  } else if constexpr (function == Unary::erfc) {
    return std::erfc(x);
  } else if constexpr (function == Unary::exp) {
    return std::exp(x);
  } else if constexpr (function == Unary::expm1) {
    return std::expm1(x);
  } else if constexpr (function == Unary::floor) {
    return std::floor(x);
  } else if constexpr (function == Unary::leaky_relu) {
    return x > 0 ? x : alpha * x;
  } else if constexpr (function == Unary::log) {
    return std::log(x);
  } else if constexpr (function == Unary::log1p) {
    return std::log1p(x);
  } else if constexpr (function == Unary::rsqrt) {
    return C(1) / std::sqrt(x);
  } else if constexpr (function == Unary::selu) {
    return x < 0 ? C(k_selu_scale_alpha) * std::expm1(x) : C(k_selu_scale) * x;
  } else if constexpr (function == Unary::sigmoid) {
    return sigmoid(x);
  } else if constexpr (function == Unary::softplus) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  } else if constexpr (function == Unary::softsign) {
    return x / (C(1) + std::abs(x));
  } else if constexpr (function == Unary::sqrt) {
    return std::sqrt(x);
  } else if constexpr (function == Unary::tanh) {
    return std::tanh(x);
  } else {
    return number_function<function>(x);
  }
}

}  // namespace halfstep::backend::cuda::kernels
