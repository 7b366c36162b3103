#pragma once
// The four operations of arithmetic and functions that consist of them.

#include "backend/functions/function.h"

namespace halfstep::backend::functions {

struct Abs : Function<1> {
  static constexpr const char* op = "Abs";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    if constexpr (std::is_floating_point_v<C>) {
      return Math::abs(x);
    } else {
      return static_cast<C>(negative<Math>(x) ? -x : x);
    }
  }
};

struct Neg : Function<1> {
  static constexpr const char* op = "Neg";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return static_cast<C>(-x);
  }
};

struct OnesLike : Function<1> {
  static constexpr const char* op = "OnesLike";
  static constexpr Domain domain = Domain::any;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C) {
    return C(1);
  }
};

struct Reciprocal : Function<1> {
  static constexpr const char* op = "Reciprocal";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x) {
    // Integer 1/0 is undefined; it must not trap.
    if constexpr (std::is_integral_v<C>) return static_cast<C>(x == 0 ? 0 : 1 / x);
    return static_cast<C>(C(1) / x);
  }
};

struct ReciprocalGrad : Function<2> {
  static constexpr const char* op = "ReciprocalGrad";
  template <class Math, class C>
  static constexpr C apply(C y, C dy) {
    return -dy * y * y;
  }
};

struct Sign : Function<1> {
  static constexpr const char* op = "Sign";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x > 0 ? C(1) : (negative<Math>(x) ? static_cast<C>(-1) : x);
  }
};

struct Square : Function<1> {
  static constexpr const char* op = "Square";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return static_cast<C>(x * x);
  }
};

struct ZerosLike : Function<1> {
  static constexpr const char* op = "ZerosLike";
  static constexpr Domain domain = Domain::any;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C) {
    return C(0);
  }
};

struct Add : Function<2> {
  static constexpr const char* op = "Add";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return static_cast<C>(x + y);
  }
};

struct AddV2 : Add {
  static constexpr const char* op = "AddV2";
};

struct DivNoNan : Function<2> {
  static constexpr const char* op = "DivNoNan";
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return y == 0 ? C(0) : x / y;
  }
};

struct Mul : Function<2> {
  static constexpr const char* op = "Mul";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return static_cast<C>(x * y);
  }
};

/// The quotient, for integers truncated towards zero and 0 where it is undefined.
struct RealDiv : Function<2> {
  static constexpr const char* op = "RealDiv";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    if constexpr (std::is_integral_v<C>) {
      if (y == 0) return 0;
      if constexpr (std::is_signed_v<C>) {
        if (y == -1) return static_cast<C>(0U - static_cast<std::make_unsigned_t<C>>(x));
      }
    }
    return static_cast<C>(x / y);
  }
};

struct FloorDiv : Function<2> {
  static constexpr const char* op = "FloorDiv";
  static constexpr Domain domain = Domain::number;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    if constexpr (std::is_integral_v<C>) {
      const C q = RealDiv::apply<Math>(x, y);
      const bool inexact = y != 0 && static_cast<C>(q * y) != x;
      return static_cast<C>(inexact && negative<Math>(x) != negative<Math>(y) ? q - 1 : q);
    } else {
      return Math::floor(x / y);
    }
  }
};

struct SquaredDifference : Function<2> {
  static constexpr const char* op = "SquaredDifference";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return static_cast<C>((x - y) * (x - y));
  }
};

struct Sub : Function<2> {
  static constexpr const char* op = "Sub";
  static constexpr Domain domain = Domain::number;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return static_cast<C>(x - y);
  }
};

using UnaryArithmetic = List<Abs, Neg, OnesLike, Reciprocal, Sign, Square, ZerosLike>;
using BinaryArithmetic =
    List<Add, AddV2, DivNoNan, FloorDiv, Mul, RealDiv, ReciprocalGrad, SquaredDifference, Sub>;

}  // namespace halfstep::backend::functions
