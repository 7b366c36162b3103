#pragma once
// Elementwise ops of one operand, or of several operands that broadcast. The functions of one and
// two operands, and their dtypes, are those of backend/functions.

#include <cstdint>
#include <span>
#include <string_view>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

/// y = f(x). x and y have `elements` of `dtype`; predicates return bool. y may alias x where their
/// elements have the same size.
struct UnaryParams {
  DType dtype{};  ///< of x
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
  double alpha = 0;  ///< the function's attribute
};
using Unary = void (*)(Stream stream, const UnaryParams& params);

/// The function of an op, such as "Relu"; nullptr for ops that are none.
Unary unary_of(std::string_view op);

/// y = f(a, b) with operands in the op's order, also for gradients. a and b broadcast to y's shape;
/// comparisons return bool. y may alias an input of y's shape and element size.
struct BinaryParams {
  DType dtype{};  ///< of a and b
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  Shape a_shape;
  Shape b_shape;
  Shape shape;
  double alpha = 0;  ///< the function's attribute
};
using Binary = void (*)(Stream stream, const BinaryParams& params);

/// The function of an op, such as "AddV2"; nullptr for ops that are none.
Binary binary_of(std::string_view op);

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
