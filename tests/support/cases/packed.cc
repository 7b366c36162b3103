#include "graph/ops/packed.h"

#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

using graph::ops::operand_format;
using graph::ops::PackedFormat;

/// An operand of random parts in [0, 0.75]: bytes below 64 in both halves of a bfloat16.
Operand parts(std::int64_t bytes) { return indices({bytes}, 0, 64, DType::uint8); }

OpCase packed_matmul(std::string name, DType dtype, std::int64_t products, bool all) {
  // No padding along the depth, where it must be zero.
  constexpr std::int64_t m = 40, n = 45, k = 192;
  OpCase c{.name = "PackedMatMul/" + name,
           .op = "PackedMatMul",
           .inputs = {parts(graph::ops::packed_bytes(m, k, operand_format(dtype, products))),
                      parts(graph::ops::packed_bytes(n, k, operand_format(dtype, products)))},
           .terms = k * products,
           .magnitude = 16,
           .check_gradient = false};
  std::vector<DType> arguments;
  if (all) {
    c.inputs.push_back(typed(uniform({n}), DType::float32));
    c.inputs.push_back(parts(graph::ops::packed_mask_bytes(m, n)));
    arguments = {DType::float32, DType::uint8};
  }
  c.attrs = {{"T", dtype},
             {"Targs", arguments},
             {"Tresults", std::vector<DType>{dtype, DType::float32, DType::float32, dtype, dtype}},
             {"m", m},
             {"n", n},
             {"k", k},
             {"products", products},
             {"bias", all},
             {"activation", std::string(all ? "Relu" : "")},
             {"mask", all},
             {"forms", std::string("rfgsn")}};
  return c;
}

/// The same over a row-major operand a of `source`.
OpCase row_major(OpCase c, DType source, bool transpose) {
  const auto m = c.attrs.get<std::int64_t>("m"), k = c.attrs.get<std::int64_t>("k");
  c.name =
      fmt::format("{} over {}{}", c.name, transpose ? "transposed " : "", halfstep::name(source));
  c.inputs[0] = typed(uniform(transpose ? Shape{k, m} : Shape{m, k}), source);
  c.attrs.set("transpose_a", transpose);
  return c;
}

/// A gradient of up to 100 that is applied with a rate of 2^-12.
OpCase matmul_update(DType dtype, std::int64_t products) {
  constexpr std::int64_t m = 40, n = 45, k = 192;
  return {.name = fmt::format("PackedMatMulUpdate/{} by {}", halfstep::name(dtype), products),
          .op = "PackedMatMulUpdate",
          .attrs = {{"T", dtype},
                    {"m", m},
                    {"n", n},
                    {"k", k},
                    {"products", products},
                    {"rule", std::string("ResourceApplyGradientDescent")}},
          .inputs = {typed(variable({m, n}), DType::float32),
                     typed(number(0x1p-12), DType::float32),
                     parts(graph::ops::packed_bytes(m, k, operand_format(dtype, products))),
                     typed(number(1), DType::float32),
                     parts(graph::ops::packed_bytes(n, k, operand_format(dtype, products)))},
          // Values that differ slightly before rounding may be one ulp of 16 bits apart after it:
          // 2^-7 of the gradient, times the rate.
          .terms = 1 << 16,
          .magnitude = 100 * 0x1p-12,
          .check_gradient = false};
}

}  // namespace

std::vector<OpCase> packed_cases() {
  std::vector<OpCase> cases{
      packed_matmul("plain", DType::bfloat16, 1, false),
      packed_matmul("bias, activation and mask", DType::bfloat16, 1, true),
      packed_matmul("float16 by 4", DType::float16, 4, true),
      packed_matmul("float16", DType::float16, 1, true),
      row_major(packed_matmul("bias, activation and mask", DType::bfloat16, 1, true),
                DType::bfloat16,
                true),
      row_major(packed_matmul("float16 by 4", DType::float16, 4, true), DType::float32, false),
      row_major(packed_matmul("float16", DType::float16, 1, true), DType::float32, false),
      matmul_update(DType::bfloat16, 1),
      matmul_update(DType::float16, 4),
      matmul_update(DType::float16, 1)};
  for (const auto& [dtype, parts] :
       {PackedFormat{}, PackedFormat{DType::float16, 1}, PackedFormat{DType::float16, 2}}) {
    for (const std::string side : {"a", "b"}) {
      for (const bool transpose : {false, true}) {
        cases.push_back({.name = fmt::format("PackedVariable/{} in {} as {}{}",
                                             halfstep::name(dtype),
                                             parts,
                                             transpose ? "transposed " : "",
                                             side),
                         .op = "PackedVariable",
                         .attrs = {{"dtype", dtype},
                                   {"parts", parts},
                                   {"side", side},
                                   {"transpose", transpose}},
                         .inputs = {typed(variable({37, 70}), DType::float32)},
                         .check_gradient = false});
        cases.push_back({.name = fmt::format("PackOperand/{} in {} as {}{}",
                                             halfstep::name(dtype),
                                             parts,
                                             transpose ? "transposed " : "",
                                             side),
                         .op = "PackOperand",
                         .attrs = {{"dtype", dtype},
                                   {"parts", parts},
                                   {"side", side},
                                   {"transpose", transpose}},
                         .inputs = {uniform({37, 70})},
                         .check_gradient = false});
      }
    }
  }
  return cases;
}

}  // namespace halfstep::testing
