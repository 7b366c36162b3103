// Elementwise ops with several inputs and NumPy broadcasting, in float (double for float64),
// rounded once. Maximum, Minimum and ClipByValue propagate NaN.

#include <cmath>

#include "backend/cpu/reference/elementwise.h"
#include "backend/cpu/reference/reference.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu {
namespace {

template <class F>
Kernel binary_op(std::string_view op, std::string_view name, F f) {
  return map_row<2, Domain::number>(op, name, f);
}

template <class F>
Kernel comparison(std::string_view op, std::string_view name, F f) {
  return question_row<2, Domain::number>(op, name, f);
}

/// Quotient truncated towards zero; 0 where an integer quotient is undefined.
template <class C>
C divide(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<C>) {
      if (y == -1) return static_cast<C>(0U - static_cast<std::make_unsigned_t<C>>(x));
    }
  }
  return static_cast<C>(x / y);
}

template <class C>
C floor_divide(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    const C q = divide(x, y);
    const bool inexact = y != 0 && static_cast<C>(q * y) != x;
    return static_cast<C>(inexact && ((x < 0) != (y < 0)) ? q - 1 : q);
  } else {
    return std::floor(x / y);
  }
}

/// x^y; for integers by squaring, modulo 2^n, and 0 where a negative exponent gives a fraction.
template <class C>
C power(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    if (y < 0) return x == 1 ? C(1) : (x == static_cast<C>(-1) ? C(y % 2 == 0 ? 1 : -1) : C(0));
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

/// A sum of any number of inputs in double, rounded once.
Prepared prepare_add_n(const NodeView& node, const Capabilities&) {
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([](const Args& args) {
      T* y = args.out[0].as<T>();
      parallel_for(args.out[0].elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          Sum<T> sum = 0;
          for (const TensorView& x : args.in) sum += load_sum(x.as<T>()[i]);
          y[i] = store<T>(sum);
        }
      });
    });
  });
}

/// The condition's strides: of its shape when equal or a scalar, along the first axis for a vector.
Strides select_strides(const Shape& condition, const Shape& shape, bool rows) {
  if (!rows) return broadcast_strides(condition, shape);
  Strides strides{};
  strides[0] = 1;
  return strides;
}

Prepared prepare_select(const NodeView& node, const Capabilities&) {
  const Shape shape = node.output().shape;
  // A vector condition selects whole rows in Select; SelectV2 broadcasts it like any operand.
  const bool rows = node.node.is(graph::ops::k_select) && node.input(0).shape.rank() == 1;
  const std::array<Strides, 3> strides{select_strides(node.input(0).shape, shape, rows),
                                       broadcast_strides(node.input(1).shape, shape),
                                       broadcast_strides(node.input(2).shape, shape)};
  return dispatch(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& args) {
      const bool* condition = args.in[0].as<bool>();
      const T* t = args.in[1].as<T>();
      const T* e = args.in[2].as<T>();
      T* y = args.out[0].as<T>();
      parallel_for(shape.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
        walk(shape, strides, begin, end, [&](std::int64_t i, const auto& at) {
          y[i] = condition[at[0]] ? t[at[1]] : e[at[2]];
        });
      });
    });
  });
}

}  // namespace

std::vector<Kernel> binary_kernels() {
  constexpr auto k_add = [](auto x, auto y) { return x + y; };
  return {
      binary_op("Add", "reference/add", k_add),
      {"AddN", "reference/add_n", executable, prepare_add_n, 0b1},
      binary_op("AddV2", "reference/add_v2", k_add),
      map_row<3, Domain::number>("ClipByValue",
                                 "reference/clip_by_value",
                                 [](auto x, auto low, auto high) {
                                   const auto raised = x < low ? low : x;
                                   return raised > high ? high : raised;
                                 }),
      map_row<2, Domain::floating>("DivNoNan",
                                   "reference/div_no_nan",
                                   [](auto x, auto y) { return y == 0 ? decltype(x){} : x / y; }),
      question_row<2, Domain::any>(
          "Equal", "reference/equal", [](auto x, auto y) { return x == y; }),
      binary_op(
          "FloorDiv", "reference/floor_div", [](auto x, auto y) { return floor_divide(x, y); }),
      comparison("Greater", "reference/greater", [](auto x, auto y) { return x > y; }),
      comparison("GreaterEqual", "reference/greater_equal", [](auto x, auto y) { return x >= y; }),
      comparison("Less", "reference/less", [](auto x, auto y) { return x < y; }),
      comparison("LessEqual", "reference/less_equal", [](auto x, auto y) { return x <= y; }),
      map_row<2, Domain::boolean>(
          "LogicalAnd", "reference/logical_and", [](auto x, auto y) { return x && y; }),
      map_row<2, Domain::boolean>(
          "LogicalOr", "reference/logical_or", [](auto x, auto y) { return x || y; }),
      binary_op(
          "Maximum", "reference/maximum", [](auto x, auto y) { return x > y || x != x ? x : y; }),
      binary_op(
          "Minimum", "reference/minimum", [](auto x, auto y) { return x < y || x != x ? x : y; }),
      binary_op("Mul", "reference/mul", [](auto x, auto y) { return x * y; }),
      question_row<2, Domain::any>(
          "NotEqual", "reference/not_equal", [](auto x, auto y) { return x != y; }),
      binary_op("Pow", "reference/pow", [](auto x, auto y) { return power(x, y); }),
      binary_op("RealDiv", "reference/real_div", [](auto x, auto y) { return divide(x, y); }),
      {"Select", "reference/select", executable, prepare_select, 0b110},
      {"SelectV2", "reference/select_v2", executable, prepare_select, 0b110},
      binary_op("SquaredDifference",
                "reference/squared_difference",
                [](auto x, auto y) { return (x - y) * (x - y); }),
      binary_op("Sub", "reference/sub", [](auto x, auto y) { return x - y; }),
  };
}

}  // namespace halfstep::backend::cpu
