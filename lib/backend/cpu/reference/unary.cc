// Elementwise ops with one input: y[i] = f(x[i]) in float (double for float64), rounded once.

#include <cmath>

#include "backend/cpu/reference/elementwise.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

template <class F>
Kernel floating(std::string_view op, std::string_view name, F f) {
  return map_row<1, Domain::floating>(op, name, f);
}

template <class F>
Kernel unary_op(std::string_view op, std::string_view name, F f) {
  return map_row<1, Domain::number>(op, name, f);
}

/// A function of the op's output y and the incoming gradient dy.
template <class F>
Kernel slope(std::string_view op, std::string_view name, F f) {
  return map_row<2, Domain::floating>(op, name, f);
}

template <class F>
Kernel predicate(std::string_view op, std::string_view name, F f) {
  return question_row<1, Domain::floating>(op, name, f);
}

}  // namespace

std::vector<Kernel> unary_kernels() {
  return {
      unary_op("Abs", "reference/abs", [](auto x) { return x < 0 ? -x : (x == 0 ? x * x : x); }),
      floating("Ceil", "reference/ceil", [](auto x) { return std::ceil(x); }),
      floating("Erf", "reference/erf", [](auto x) { return std::erf(x); }),
      floating("Erfc", "reference/erfc", [](auto x) { return std::erfc(x); }),
      floating("Exp", "reference/exp", [](auto x) { return std::exp(x); }),
      floating("Expm1", "reference/expm1", [](auto x) { return std::expm1(x); }),
      floating("Floor", "reference/floor", [](auto x) { return std::floor(x); }),
      predicate("IsFinite", "reference/is_finite", [](auto x) { return std::isfinite(x); }),
      predicate("IsInf", "reference/is_inf", [](auto x) { return std::isinf(x); }),
      predicate("IsNan", "reference/is_nan", [](auto x) { return std::isnan(x); }),
      floating("Log", "reference/log", [](auto x) { return std::log(x); }),
      floating("Log1p", "reference/log1p", [](auto x) { return std::log1p(x); }),
      map_row<1, Domain::boolean>(
          "LogicalNot", "reference/logical_not", [](auto x) { return x == decltype(x){}; }),
      unary_op("Neg", "reference/neg", [](auto x) { return -x; }),
      map_row<1, Domain::any>("OnesLike", "reference/ones_like", [](auto) { return 1; }),
      unary_op("Reciprocal",
               "reference/reciprocal",
               [](auto x) {
                 // Integer 1/0 is undefined; it must not trap.
                 if constexpr (std::is_integral_v<decltype(x)>) return x == 0 ? 0 : 1 / x;
                 return decltype(x){1} / x;
               }),
      slope("ReciprocalGrad",
            "reference/reciprocal_grad",
            [](auto y, auto dy) { return -dy * y * y; }),
      unary_op("Round",
               "reference/round",
               [](auto x) {
                 // To nearest, ties to even.
                 if constexpr (std::is_integral_v<decltype(x)>)
                   return x;
                 else
                   return std::nearbyint(x);
               }),
      floating("Rsqrt", "reference/rsqrt", [](auto x) { return decltype(x){1} / std::sqrt(x); }),
      slope("RsqrtGrad",
            "reference/rsqrt_grad",
            [](auto y, auto dy) { return dy * (y * y * y) * decltype(y)(-0.5); }),
      unary_op("Sign",
               "reference/sign",
               [](auto x) {
                 using C = decltype(x);
                 return x > 0 ? C(1) : (x < 0 ? C(-1) : x);  // NaN stays NaN
               }),
      floating("Sqrt", "reference/sqrt", [](auto x) { return std::sqrt(x); }),
      slope("SqrtGrad",
            "reference/sqrt_grad",
            [](auto y, auto dy) { return dy * decltype(y)(0.5) / y; }),
      unary_op("Square", "reference/square", [](auto x) { return x * x; }),
      map_row<1, Domain::any>("ZerosLike", "reference/zeros_like", [](auto) { return 0; }),
  };
}

}  // namespace halfstep::backend::cpu
