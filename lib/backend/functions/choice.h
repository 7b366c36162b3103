#pragma once
// Comparisons, predicates, logic and selection.

#include "backend/functions/function.h"

namespace halfstep::backend::functions {

struct IsFinite : Function<1> {
  static constexpr const char* op = "IsFinite";
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x) {
    return Math::is_finite(x);
  }
};

struct IsInf : Function<1> {
  static constexpr const char* op = "IsInf";
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x) {
    return Math::is_inf(x);
  }
};

struct IsNan : Function<1> {
  static constexpr const char* op = "IsNan";
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x) {
    return Math::is_nan(x);
  }
};

struct LogicalNot : Function<1> {
  static constexpr const char* op = "LogicalNot";
  static constexpr Domain domain = Domain::boolean;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return static_cast<C>(x == C{});
  }
};

struct Equal : Function<2> {
  static constexpr const char* op = "Equal";
  static constexpr Domain domain = Domain::any;
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x, C y) {
    return x == y;
  }
};

struct Greater : Function<2> {
  static constexpr const char* op = "Greater";
  static constexpr Domain domain = Domain::number;
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x, C y) {
    return x > y;
  }
};

struct GreaterEqual : Function<2> {
  static constexpr const char* op = "GreaterEqual";
  static constexpr Domain domain = Domain::number;
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x, C y) {
    return x >= y;
  }
};

struct Less : Function<2> {
  static constexpr const char* op = "Less";
  static constexpr Domain domain = Domain::number;
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x, C y) {
    return x < y;
  }
};

struct LessEqual : Function<2> {
  static constexpr const char* op = "LessEqual";
  static constexpr Domain domain = Domain::number;
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x, C y) {
    return x <= y;
  }
};

struct NotEqual : Function<2> {
  static constexpr const char* op = "NotEqual";
  static constexpr Domain domain = Domain::any;
  static constexpr bool predicate = true;
  template <class Math, class C>
  static constexpr bool apply(C x, C y) {
    return x != y;
  }
};

struct LogicalAnd : Function<2> {
  static constexpr const char* op = "LogicalAnd";
  static constexpr Domain domain = Domain::boolean;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return static_cast<C>(x != C{} && y != C{});
  }
};

struct LogicalOr : Function<2> {
  static constexpr const char* op = "LogicalOr";
  static constexpr Domain domain = Domain::boolean;
  static constexpr bool vectorized = false;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return static_cast<C>(x != C{} || y != C{});
  }
};

struct Maximum : Function<2> {
  static constexpr const char* op = "Maximum";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return x > y || x != x ? x : y;
  }
};

struct Minimum : Function<2> {
  static constexpr const char* op = "Minimum";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x, C y) {
    return x < y || x != x ? x : y;
  }
};

struct ClipByValue : Function<3> {
  static constexpr const char* op = "ClipByValue";
  static constexpr Domain domain = Domain::number;
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x, C low, C high) {
    const C raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

using UnaryTests = List<IsFinite, IsInf, IsNan, LogicalNot>;
using Comparisons = List<Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual>;
using BinaryChoices = List<LogicalAnd, LogicalOr, Maximum, Minimum>;
using TernaryChoices = List<ClipByValue>;

}  // namespace halfstep::backend::functions
