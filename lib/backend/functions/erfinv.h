#pragma once

#include <limits>
#include <numbers>

#include "backend/functions/function.h"

namespace halfstep::backend::functions {

/// The inverse of erf, infinite at -1 and 1: x times a polynomial in -ln(1 - x^2), and in its root
/// near -1 and 1, within 5 ulp in float; in double followed by a step of Halley's method. Source:
/// Giles 2010, "Approximating the erfinv function".
struct Erfinv : Function<1> {
  static constexpr const char* op = "Erfinv";
  template <class Math, class C>
  static constexpr C apply(C x) {
    const C w = -Math::log((C(1) - x) * (C(1) + x));
    const C r = w - C(2.5), s = Math::sqrt(w) - C(3);
    const C inner =
        C(1.50140941) +
        r * (C(0.246640727) +
             r * (C(-0.00417768164) +
                  r * (C(-0.00125372503) +
                       r * (C(0.00021858087) +
                            r * (C(-4.39150654e-06) +
                                 r * (C(-3.5233877e-06) +
                                      r * (C(3.43273939e-07) + r * C(2.81022636e-08))))))));
    const C outer =
        C(2.83297682) +
        s * (C(1.00167406) +
             s * (C(0.00943887047) +
                  s * (C(-0.0076224613) +
                       s * (C(0.00573950773) +
                            s * (C(-0.00367342844) +
                                 s * (C(0.00134934322) +
                                      s * (C(0.000100950558) + s * C(-0.000200214257))))))));
    C y = x * (w < C(5) ? inner : outer);
    if constexpr (std::is_same_v<C, double>) {
      const C error = Math::abs(x) < 0.5 ? Math::erf(y) - x
                      : x < 0            ? Math::erfc(-y) - (1 + x)
                                         : (1 - x) - Math::erfc(y);
      const C u = error * Math::exp(y * y) / (2 * std::numbers::inv_sqrtpi);
      y -= u / (1 + y * u);
    }
    // Outside the domain of the polynomial.
    return Math::abs(x) == C(1) ? x * std::numeric_limits<C>::infinity() : y;
  }
};

}  // namespace halfstep::backend::functions
