#pragma once
// Powers, exponentials and roundings; gradients are functions of the function's output y and of dy.

#include <cstdint>

#include "backend/functions/function.h"

namespace halfstep::backend::functions {

struct Ceil : Function<1> {
  static constexpr const char* op = "Ceil";
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::ceil(x);
  }
};

struct Erf : Function<1> {
  static constexpr const char* op = "Erf";
  static constexpr bool costly = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::erf(x);
  }
};

struct Erfc : Function<1> {
  static constexpr const char* op = "Erfc";
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::erfc(x);
  }
};

struct Exp : Function<1> {
  static constexpr const char* op = "Exp";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::exp(x);
  }
};

struct Expm1 : Function<1> {
  static constexpr const char* op = "Expm1";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::expm1(x);
  }
};

struct Floor : Function<1> {
  static constexpr const char* op = "Floor";
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::floor(x);
  }
};

struct Log : Function<1> {
  static constexpr const char* op = "Log";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::log(x);
  }
};

struct Log1p : Function<1> {
  static constexpr const char* op = "Log1p";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::log1p(x);
  }
};

/// x^y; for integers by squaring, modulo 2^n, and 0 where a negative exponent gives a fraction.
struct Pow : Function<2> {
  static constexpr const char* op = "Pow";
  static constexpr Domain domain = Domain::number;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    if constexpr (std::is_integral_v<C>) {
      if (negative<Math>(y)) {
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
      return Math::pow(x, y);
    }
  }
};

/// To nearest, ties to even.
struct Round : Function<1> {
  static constexpr const char* op = "Round";
  static constexpr Domain domain = Domain::number;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x) {
    if constexpr (std::is_integral_v<C>) {
      return x;
    } else {
      return Math::round(x);
    }
  }
};

struct Rsqrt : Function<1> {
  static constexpr const char* op = "Rsqrt";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return C(1) / Math::sqrt(x);
  }
};

struct RsqrtGrad : Function<2> {
  static constexpr const char* op = "RsqrtGrad";
  template <class Math, class C>
  static constexpr C apply(C y, C dy) {
    return dy * (y * y * y) * C(-0.5);
  }
};

struct Sqrt : Function<1> {
  static constexpr const char* op = "Sqrt";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::sqrt(x);
  }
};

struct SqrtGrad : Function<2> {
  static constexpr const char* op = "SqrtGrad";
  template <class Math, class C>
  static constexpr C apply(C y, C dy) {
    return dy * C(0.5) / y;
  }
};

struct Tanh : Function<1> {
  static constexpr const char* op = "Tanh";
  template <class Math, class C>
  static constexpr C apply(C x) {
    return Math::tanh(x);
  }
};

struct TanhGrad : Function<2> {
  static constexpr const char* op = "TanhGrad";
  template <class Math, class C>
  static constexpr C apply(C y, C dy) {
    return dy * (C(1) - y * y);
  }
};

using UnaryElementary =
    List<Ceil, Erf, Erfc, Exp, Expm1, Floor, Log, Log1p, Round, Rsqrt, Sqrt, Tanh>;
using BinaryElementary = List<Pow, RsqrtGrad, SqrtGrad, TanhGrad>;

}  // namespace halfstep::backend::functions
