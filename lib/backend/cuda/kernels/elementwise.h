#pragma once
// Elementwise ops of one operand, or of several operands that broadcast. Formulas, dtypes and the
// treatment of NaN are those of the CPU's reference kernels.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

/// y = f(x), named like the ops.
enum class Unary {
  abs,
  ceil,
  elu,
  erf,
  erfc,
  exp,
  expm1,
  floor,
  is_finite,
  is_inf,
  is_nan,
  leaky_relu,
  log,
  log1p,
  logical_not,
  neg,
  ones_like,
  reciprocal,
  relu,
  relu6,
  round,
  rsqrt,
  selu,
  sigmoid,
  sign,
  softplus,
  softsign,
  sqrt,
  square,
  tanh,
  zeros_like,
};

/// The function of an op, such as "Relu"; nothing for other ops.
std::optional<Unary> unary_of(std::string_view op);

/// x and y have `elements` of `dtype`; the predicates is_finite, is_inf and is_nan return bool. y
/// may alias x where their elements have the same size.
struct UnaryParams {
  Unary function{};
  DType dtype{};  ///< of x
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
  double alpha = 0;  ///< leaky_relu's slope
};
void unary(Stream stream, const UnaryParams& params);

/// y = f(a, b) with operands in the op's order, also for gradients.
enum class Binary {
  add,
  div_no_nan,
  elu_grad,
  equal,
  floor_div,
  greater,
  greater_equal,
  leaky_relu_grad,
  less,
  less_equal,
  logical_and,
  logical_or,
  maximum,
  minimum,
  mul,
  not_equal,
  pow,
  real_div,
  reciprocal_grad,
  relu6_grad,
  relu_grad,
  rsqrt_grad,
  selu_grad,
  sigmoid_grad,
  softplus_grad,
  softsign_grad,
  sqrt_grad,
  squared_difference,
  sub,
  tanh_grad,
};

/// The function of an op, such as "AddV2"; nothing for other ops.
std::optional<Binary> binary_of(std::string_view op);

/// a and b broadcast to y's shape; comparisons return bool. y may alias an input of y's shape and
/// element size.
struct BinaryParams {
  Binary function{};
  DType dtype{};  ///< of a and b
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  Shape a_shape;
  Shape b_shape;
  Shape shape;
  double alpha = 0;  ///< leaky_relu_grad's slope
};
void binary(Stream stream, const BinaryParams& params);

/// y = min(max(x, low), high), NaN for NaN; all broadcast to y's shape. y may alias x.
struct ClipParams {
  DType dtype{};
  const void* x = nullptr;
  const void* low = nullptr;
  const void* high = nullptr;
  void* y = nullptr;
  Shape x_shape;
  Shape low_shape;
  Shape high_shape;
  Shape shape;
};
void clip(Stream stream, const ClipParams& params);

/// y = condition ? t : e, elements of any dtype. y may alias t or e where shapes agree.
struct SelectParams {
  std::size_t element_bytes = 0;
  const bool* condition = nullptr;
  const void* t = nullptr;
  const void* e = nullptr;
  void* y = nullptr;
  Shape condition_shape;
  Shape t_shape;
  Shape e_shape;
  Shape shape;
  bool rows = false;  ///< the condition is a vector along the first axis (Select, not SelectV2)
};
void select(Stream stream, const SelectParams& params);

/// y = the sum of `inputs` in order, rounded once. y may alias any input.
struct AddNParams {
  static constexpr std::size_t k_max_inputs = 256;

  DType dtype{};
  std::span<const void* const> inputs;  ///< host memory that holds device addresses
  void* y = nullptr;
  std::int64_t elements = 0;
};
void add_n(Stream stream, const AddNParams& params);

}  // namespace halfstep::backend::cuda::kernels
