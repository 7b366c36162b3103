#pragma once
// Activations x -> y, and their gradients as functions of dy and of the activation's input x or
// output y, with the operands in the op's order.

#include "backend/functions/function.h"

namespace halfstep::backend::functions {

struct Elu : Function<1> {
  static constexpr const char* op = "Elu";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x < 0 ? Math::expm1(x) : x;
  }
};

struct EluGrad : Function<2> {
  static constexpr const char* op = "EluGrad";
  template <class Math, class C>
  static constexpr C apply(C dy, C y) {
    return y < 0 ? (y + C(1)) * dy : dy;
  }
};

struct LeakyRelu : Function<1> {
  static constexpr const char* op = "LeakyRelu";
  static constexpr const char* attribute = "alpha";
  template <class Math, class C>
  static constexpr C apply(C x, C alpha) {
    return x > 0 ? x : alpha * x;
  }
};

struct LeakyReluGrad : Function<2> {
  static constexpr const char* op = "LeakyReluGrad";
  static constexpr const char* attribute = "alpha";
  template <class Math, class C>
  static constexpr C apply(C dy, C x, C alpha) {
    return x > 0 ? dy : alpha * dy;
  }
};

struct Relu : Function<1> {
  static constexpr const char* op = "Relu";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return negative<Math>(x) ? C(0) : x;
  }
};

struct ReluGrad : Function<2> {
  static constexpr const char* op = "ReluGrad";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C dy, C y) {
    return y > 0 ? dy : C(0);
  }
};

struct Relu6 : Function<1> {
  static constexpr const char* op = "Relu6";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return negative<Math>(x) ? C(0) : (x > 6 ? C(6) : x);
  }
};

struct Relu6Grad : Function<2> {
  static constexpr const char* op = "Relu6Grad";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C dy, C y) {
    return y > 0 && y < 6 ? dy : C(0);
  }
};

// Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
inline constexpr double k_selu_scale = 1.0507009873554804934193349852946;
inline constexpr double k_selu_scale_alpha = 1.7580993408473768599402175208123;

struct Selu : Function<1> {
  static constexpr const char* op = "Selu";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x < 0 ? C(k_selu_scale_alpha) * Math::expm1(x) : C(k_selu_scale) * x;
  }
};

struct SeluGrad : Function<2> {
  static constexpr const char* op = "SeluGrad";
  template <class Math, class C>
  static constexpr C apply(C dy, C y) {
    return y < 0 ? dy * (y + C(k_selu_scale_alpha)) : dy * C(k_selu_scale);
  }
};

/// 1 / (1 + exp(-x)) without overflow on either side.
struct Sigmoid : Function<1> {
  static constexpr const char* op = "Sigmoid";
  template <class Math, class C>
  static constexpr C apply(C x) {
    const C e = Math::exp(x < 0 ? x : -x);
    return (x < 0 ? e : C(1)) / (C(1) + e);
  }
};

struct SigmoidGrad : Function<2> {
  static constexpr const char* op = "SigmoidGrad";
  template <class Math, class C>
  static constexpr C apply(C y, C dy) {
    return dy * y * (C(1) - y);
  }
};

/// log(1 + exp(x)) without overflow.
struct Softplus : Function<1> {
  static constexpr const char* op = "Softplus";
  template <class Math, class C>
  static constexpr C apply(C x) {
    const C y = Math::log1p(Math::exp(x < 0 ? x : -x));
    return x > 0 ? x + y : y;
  }
};

struct SoftplusGrad : Function<2> {
  static constexpr const char* op = "SoftplusGrad";
  template <class Math, class C>
  static constexpr C apply(C dy, C x) {
    return dy * Sigmoid::apply<Math>(x);
  }
};

struct Softsign : Function<1> {
  static constexpr const char* op = "Softsign";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x / (C(1) + Math::abs(x));
  }
};

struct SoftsignGrad : Function<2> {
  static constexpr const char* op = "SoftsignGrad";
  template <class Math, class C>
  static constexpr C apply(C dy, C x) {
    const C d = C(1) + Math::abs(x);
    return dy / (d * d);
  }
};

using Activations = List<Elu, LeakyRelu, Relu, Relu6, Selu, Sigmoid, Softplus, Softsign>;
using ActivationGradients = List<EluGrad,
                                 LeakyReluGrad,
                                 ReluGrad,
                                 Relu6Grad,
                                 SeluGrad,
                                 SigmoidGrad,
                                 SoftplusGrad,
                                 SoftsignGrad>;

}  // namespace halfstep::backend::functions
