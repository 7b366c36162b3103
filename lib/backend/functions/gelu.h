#pragma once
// GELU in both forms, and the gradients as functions of dy and of the input x.

#include "backend/functions/activation.h"

namespace halfstep::backend::functions {

/// x Phi(x), Phi the standard normal distribution function. Hendrycks and Gimpel, "Gaussian error
/// linear units", 2016.
struct Gelu : Function<1> {
  static constexpr const char* op = "Gelu";
  static constexpr bool costly = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x * Math::normal_cdf(x);
  }
};

/// The derivative is Phi(x) + x phi(x), phi the density.
struct GeluGrad : Function<2> {
  static constexpr const char* op = "GeluGrad";
  static constexpr bool costly = true;
  template <class Math, class C>
  static constexpr C apply(C dy, C x) {
    const C density = C(0.39894228040143267794) * Math::exp(C(-0.5) * (x * x));
    return dy * (Math::normal_cdf(x) + x * density);
  }
};

/// The approximation 0.5 x (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), as x
/// sigmoid(2u).
struct GeluApproximate : Function<1> {
  static constexpr const char* op = "GeluApproximate";
  static constexpr bool costly = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x * Sigmoid::apply<Math>(doubled<Math>(clipped<Math>(x)));
  }

  /// 2u.
  template <class Math, class C>
  static constexpr C doubled(C x) {
    return x * (C(1.5957691216057307) + C(0.071354816272600242) * (x * x));
  }
  /// Beyond 30 the sigmoid is 0 or 1 also in double, and x^3 may overflow.
  template <class Math, class C>
  static constexpr C clipped(C x) {
    return x < C(-30) ? C(-30) : (x > C(30) ? C(30) : x);
  }
};

struct GeluApproximateGrad : Function<2> {
  static constexpr const char* op = "GeluApproximateGrad";
  static constexpr bool costly = true;
  template <class Math, class C>
  static constexpr C apply(C dy, C x) {
    const C z = GeluApproximate::clipped<Math>(x);
    const C y = Sigmoid::apply<Math>(GeluApproximate::doubled<Math>(z));
    const C slope = C(1.5957691216057307) + C(0.21406444881780073) * (z * z);
    return dy * (y + z * slope * (y * (C(1) - y)));
  }
};

using Gelus = List<Gelu, GeluApproximate>;
using GeluGradients = List<GeluGrad, GeluApproximateGrad>;

}  // namespace halfstep::backend::functions
