#pragma once
// The scalar functions of the elementwise ops: the formula of each is written here once, for the
// reference kernels (float, double and integers), the vector kernels (float, in one build per
// instruction set) and CUDA (all of them).
//
//   struct Elu : Function<1> {
//     static constexpr const char* op = "Elu";
//     template <class Math, class C>
//     static constexpr C apply(C x) {
//       return x < 0 ? Math::expm1(x) : x;
//     }
//   };
//
// C is the compute type. Math supplies the elementary functions, in which the kernels differ by a
// few ulp: StdMath of std_math.h, or the polynomials of cpu/vector/isa/math.inc.
//
// Each function and each helper is a template over Math, also where it needs no elementary
// function: a build for an instruction set has a Math of its own unnamed namespace, so that the
// linker cannot keep a copy with AVX-512 instructions for the whole program. They are constexpr
// because nvcc lets device code call such functions. Comparisons are written so that NaN
// propagates.

#include <type_traits>

namespace halfstep::backend::functions {

/// The dtypes that the operands of a function may have.
enum class Domain { floating, number, boolean, any };

/// The properties of a function of `operands` values, with the defaults of most functions.
template <int operands>
struct Function {
  static constexpr int arity = operands;
  static constexpr Domain domain = Domain::floating;
  /// The op's floating-point attribute that apply() takes after the operands; nullptr: none.
  static constexpr const char* attribute = nullptr;
  /// The result is bool.
  static constexpr bool predicate = false;
  /// The result is an operand, negated or not, or a small integer: it needs no rounding.
  static constexpr bool exact = false;
  /// Compute-bound even for float32 operands: a polynomial and an exponential, or more, per
  /// element.
  static constexpr bool costly = false;
  /// The vector kernels have a loop of it, so their Math has the functions that it calls.
  static constexpr bool vectorized = true;
};

/// F of the operands `x`; `a` is the attribute, for functions that have one.
template <class F, class Math, class C, class... X>
constexpr auto call([[maybe_unused]] C a, X... x) {
  if constexpr (F::attribute != nullptr) {
    return F::template apply<Math>(x..., a);
  } else {
    return F::template apply<Math>(x...);
  }
}

/// x < 0, without a compiler warning for unsigned x.
template <class Math, class C>
constexpr bool negative(C x) {
  if constexpr (std::is_unsigned_v<C>) {
    return false;
  } else {
    return x < C(0);
  }
}

/// A list of functions.
template <class... F>
struct List {};

}  // namespace halfstep::backend::functions
