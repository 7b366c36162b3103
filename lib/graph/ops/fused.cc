// Matmuls with the epilogues of a BLAS library. Lowering creates them, after all dtypes are
// decided.
//   FusedMatMul   c = op(a) op(b), [m, n], summed in float32; then `epilogue`:
//     epilogue                      args              results       c
//     bias                          bias              c             c + bias
//     bias_relu                     bias              c             max(c + bias, 0)
//     bias_relu_mask                bias              c, mask       the same; where it is positive
//     relu_gradient                 mask, features    c             c where the mask is 1, else 0
//     relu_gradient_bias_gradient   mask, features    c, sums [n]   the same; its column sums
//     sums_of_b                                       c, sums [n]   c; the column sums of b
// `features` is the c that was written together with the mask. A mask is written by one matmul
// [m,k] [k,n] and read by one [m,p] [n,p]^T; `partner_k` holds the reduction length of the partner,
// so that each kernel can tell whether one library runs both. Where it does not, the mask is not
// written and the sign of `features` is used.

#include "graph/ops/fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

const FusedEpilogue& epilogue_of(const InferContext& c) {
  const std::string& name = c.node.attrs.get<std::string>("epilogue");
  const auto* row = std::ranges::find(k_fused_epilogues, name, &FusedEpilogue::name);
  if (row == k_fused_epilogues.end()) {
    throw ShapeError(fmt::format("there is no epilogue '{}'", name));
  }
  return *row;
}

std::vector<Shape> infer_fused(const InferContext& c) {
  const Shape matmul = infer_matmul(c)[0];
  const Shape mask{fused_mask_bytes(matmul[0], matmul[1])};
  const FusedEpilogue& epilogue = epilogue_of(c);
  std::vector<Shape> wanted;
  if (epilogue.bias) wanted.push_back(Shape{matmul[1]});
  if (epilogue.reads_mask) wanted.insert(wanted.end(), {mask, matmul});
  if (c.inputs() != wanted.size() + 2) {
    throw ShapeError(fmt::format("{} takes {} arguments", epilogue.name, wanted.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Shape& given = c.input(i + 2).shape;
    if (given == wanted[i]) continue;
    throw ShapeError(fmt::format("argument {} of {} must have shape {}, got {}",
                                 i,
                                 epilogue.name,
                                 to_string(wanted[i]),
                                 to_string(given)));
  }
  std::vector<Shape> results{matmul};
  if (epilogue.writes_mask) results.push_back(mask);
  if (epilogue.sums) results.push_back(Shape{matmul[1]});
  return results;
}

}  // namespace

std::vector<OpDef> fused_ops() {
  return {
      define("FusedMatMul",
             "a: T, b: T, args: Targs -> results: Tresults",
             "T: {bfloat16, half, float}, Targs: list(type), Tresults: list(type), transpose_a: "
             "bool = false, transpose_b: bool = false, epilogue: string, partner_k: int = 0",
             {.infer = infer_fused, .stage = Stage::lowered})};
}

}  // namespace halfstep::graph::ops
