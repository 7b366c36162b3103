#pragma once
// The elementary functions of the standard library: those of the reference kernels, and of CUDA,
// where nvcc replaces them by the device's.

#include <cmath>

namespace halfstep::backend::functions {

struct StdMath {
  template <class C>
  static constexpr C abs(C x) {
    return std::abs(x);
  }
  template <class C>
  static constexpr C ceil(C x) {
    return std::ceil(x);
  }
  template <class C>
  static constexpr C erf(C x) {
    return std::erf(x);
  }
  template <class C>
  static constexpr C erfc(C x) {
    return std::erfc(x);
  }
  template <class C>
  static constexpr C exp(C x) {
    return std::exp(x);
  }
  template <class C>
  static constexpr C expm1(C x) {
    return std::expm1(x);
  }
  template <class C>
  static constexpr C floor(C x) {
    return std::floor(x);
  }
  template <class C>
  static constexpr bool is_finite(C x) {
    return std::isfinite(x);
  }
  template <class C>
  static constexpr bool is_inf(C x) {
    return std::isinf(x);
  }
  template <class C>
  static constexpr bool is_nan(C x) {
    return std::isnan(x);
  }
  template <class C>
  static constexpr C log(C x) {
    return std::log(x);
  }
  template <class C>
  static constexpr C log1p(C x) {
    return std::log1p(x);
  }
  /// The standard normal distribution function.
  template <class C>
  static constexpr C normal_cdf(C x) {
    return C(0.5) * std::erfc(x * C(-0.70710678118654752440));
  }
  template <class C>
  static constexpr C pow(C x, C y) {
    return std::pow(x, y);
  }
  /// To nearest, ties to even.
  template <class C>
  static constexpr C round(C x) {
    return std::nearbyint(x);
  }
  template <class C>
  static constexpr C sqrt(C x) {
    return std::sqrt(x);
  }
  template <class C>
  static constexpr C tanh(C x) {
    return std::tanh(x);
  }
};

}  // namespace halfstep::backend::functions
