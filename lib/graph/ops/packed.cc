// Matmuls over operands in the blocked order of the matrix units, with a fused epilogue. Lowering
// creates them, after all dtypes are decided.
//   PackOperand    x as one operand of a matmul over values of `dtype`; a float32 x is rounded
//                  first. Operand a: rows x depth, b: depth x columns, where depth is the
//                  reduction axis; transpose: x has the transposed layout. parts: 2 splits each
//                  float16 into two of bfloat16.
//   PackedVariable the same for a variable, kept across steps: it is packed again when the variable
//                  was written by an op other than a fused update that writes both.
//   PackedMatMul   y = a b over operands packed from values of T, accumulated in float32. a may
//                  also be row-major, [m, k] or with transpose_a [k, m]: the kernel then packs it
//                  while it multiplies, a float32 a rounded to T first. The epilogue computes
//                  y += bias, y = activation(y) and y = mask ? y : 0, each optional, and rounds
//                  once to T. args = [bias] [mask]; the mask is result M of another matmul.
//                  One result per letter of `forms`:
//                    r  y as T [m, n]                  f  the rounded y as float32 [m, n]
//                    g  y before rounding, [m, n]      s  column sums of the rounded y, T [n]
//                    A  y packed as operand a          T  y transposed, packed as operand a
//                    B  y packed as operand b, with m as depth
//                    M  y > 0, one bit each: blocks of 32 rows and 32 columns, in row-major order
//                       of blocks, a little-endian 32-bit word per row of a block
//                    n  the max-norm of the rounded y in each block of 32 rows and 32 columns, T
//                       [row blocks, column blocks]; NaN in a block that holds one. y times a
//                       scalar is finite exactly where n times that scalar is
//   `products`: partial products per multiplication: 3 or 4 (exact) of float16 values in two parts,
//               1 of values as they are.

#include "graph/ops/packed.h"

#include <fmt/format.h>

#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

Shape bytes(std::int64_t rows, std::int64_t depth, PackedFormat format) {
  return Shape{packed_bytes(rows, depth, format)};
}

std::vector<Shape> packed_shape(const InferContext& c, const Shape& x) {
  const std::string& side = c.node.attrs.get<std::string>("side");
  if (x.rank() != 2) throw ShapeError("only matrices are packed, got " + to_string(x));
  if (side != "a" && side != "b") throw ShapeError("the side must be a or b, got '" + side + "'");
  const bool rows_first = (side == "a") != c.node.attrs.get<bool>("transpose");
  const PackedFormat format = packed_format(c.node.attrs);
  return {rows_first ? bytes(x[0], x[1], format) : bytes(x[1], x[0], format)};
}

std::vector<Shape> infer_pack(const InferContext& c) { return packed_shape(c, c.input(0).shape); }

std::vector<Shape> infer_pack_variable(const InferContext& c) {
  const TensorType x = variable_type(c.producer(0));
  if (x.dtype != DType::float32) {
    throw ShapeError(fmt::format("a packed variable must be float32, got {}", name(x.dtype)));
  }
  return packed_shape(c, x.shape);
}

std::vector<Shape> infer_product(const InferContext& c) {
  const Attrs& attrs = c.node.attrs;
  const PackedFormat format = operand_format(attrs);
  const std::int64_t m = attrs.get<std::int64_t>("m");
  const std::int64_t n = attrs.get<std::int64_t>("n");
  const std::int64_t k = attrs.get<std::int64_t>("k");
  const auto expect = [&](std::size_t i, std::string_view what, const Shape& wanted) {
    if (i < c.inputs() && c.input(i).shape == wanted) return;
    throw ShapeError(fmt::format("{} must have shape {}, got {}",
                                 what,
                                 to_string(wanted),
                                 i < c.inputs() ? to_string(c.input(i).shape) : "nothing"));
  };
  const bool packed = c.inputs() > 0 && c.input(0).dtype == DType::uint8;
  const bool transpose = attrs.get<bool>("transpose_a");
  expect(0, "a", packed ? bytes(m, k, format) : transpose ? Shape{k, m} : Shape{m, k});
  expect(1, "b", bytes(n, k, format));
  std::size_t next = 2;
  if (attrs.get<bool>("bias")) expect(next++, "bias", Shape{n});
  if (attrs.get<bool>("mask")) expect(next++, "mask", Shape{packed_mask_bytes(m, n)});
  if (next != c.inputs()) throw ShapeError("more arguments than bias and mask");

  std::vector<Shape> results;
  for (const char form : attrs.get<std::string>("forms")) {
    switch (form) {
      case 'r':
      case 'f':
      case 'g':
        results.push_back(Shape{m, n});
        break;
      case 's':
        results.push_back(Shape{n});
        break;
      case 'A':
        results.push_back(bytes(m, n, format));
        break;
      case 'T':
      case 'B':
        results.push_back(bytes(n, m, format));
        break;
      case 'M':
        results.push_back(Shape{packed_mask_bytes(m, n)});
        break;
      case 'n':
        results.push_back(Shape{packed_blocks(m), packed_blocks(n)});
        break;
      default:
        throw ShapeError(fmt::format("there is no form '{}'", form));
    }
  }
  return results;
}

}  // namespace

PackedFormat packed_format(const Attrs& attrs) {
  return {attrs.get<DType>("dtype"), attrs.get<std::int64_t>("parts")};
}

PackedFormat operand_format(const Attrs& attrs) {
  return operand_format(attrs.get<DType>("T"), attrs.get<std::int64_t>("products"));
}

DType packed_result_dtype(char form, DType dtype) {
  if (form == 'f' || form == 'g') return DType::float32;
  return form == 'r' || form == 's' || form == 'n' ? dtype : DType::uint8;
}

std::vector<OpDef> packed_ops() {
  return {
      define("PackOperand",
             "x: T -> packed: uint8",
             "T: {bfloat16, half, float}, dtype: {bfloat16, half}, parts: int = 1, side: string, "
             "transpose: bool = false",
             {.infer = infer_pack, .stage = Stage::lowered}),
      define("PackedVariable",
             "handle: resource -> packed: uint8",
             "dtype: {bfloat16, half}, parts: int = 1, side: string, transpose: bool = false",
             {.infer = infer_pack_variable, .stage = Stage::lowered}),
      define(
          "PackedMatMul",
          "a: Ta, b: uint8, args: Targs -> results: Tresults",
          "T: {bfloat16, half}, Ta: {uint8, bfloat16, half, float}, Targs: list(type), Tresults: "
          "list(type), m: int, n: int, k: int, transpose_a: bool = false, products: int = 1, bias: "
          "bool = false, activation: string = '', mask: bool = false, forms: string = 'r'",
          {.infer = infer_product, .stage = Stage::lowered}),
  };
}

}  // namespace halfstep::graph::ops
