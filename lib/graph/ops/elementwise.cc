// Elementwise ops fused into one pass over memory. Lowering creates them, after all dtypes are
// decided.
//   FusedElementwise   results of `body` over `shape`, each a tensor of that shape; args are
//                      broadcast to it by NumPy's rules. Every op is computed in float32 and
//                      rounded to its dtype, bit for bit as the separate ops would be.

#include <fmt/format.h>

#include <algorithm>

#include "core/ranges.h"
#include "graph/elementwise_body.h"
#include "graph/graph.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

/// Whether an op returns bool for numeric operands.
bool is_predicate(std::string_view op) {
  return op_table().find(op)->outputs[0].fixed == DType::boolean;
}

/// Checks that the operands and the result of each op are those of its signature.
void check_steps(const InferContext& c, const ElementwiseBody& body) {
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < c.inputs(); ++i) dtypes.push_back(c.input(i).dtype);
  for (const ElementwiseStep& step : body.steps) {
    const std::size_t operands = elementwise_operands(step.op);
    if (operands == 0 || operands != step.operands.size()) {
      throw ShapeError(
          fmt::format("{} of {} operands cannot be fused", step.op, step.operands.size()));
    }
    std::vector<DType> x;
    for (const int operand : step.operands) x.push_back(dtypes[static_cast<std::size_t>(operand)]);
    bool fits = true;
    if (step.op == k_random_uniform_from_ordinal) {
      fits = x[0] == DType::int64 && step.dtype == DType::float32;
    } else if (step.op != k_cast) {
      const bool selects = x.size() == 3 && step.op.starts_with("Select");
      const DType wanted = is_predicate(step.op) ? x[0] : step.dtype;
      fits = !is_predicate(step.op) || step.dtype == DType::boolean;
      fits = fits && (!selects || x[0] == DType::boolean);
      fits = fits && std::all_of(x.begin() + (selects ? 1 : 0), x.end(), [&](DType dtype) {
               return dtype == wanted;
             });
    }
    if (!fits) {
      throw ShapeError(
          fmt::format("{} to {} does not fit its operands", step.op, name(step.dtype)));
    }
    dtypes.push_back(step.dtype);
  }
}

std::vector<Shape> infer_elementwise(const InferContext& c) {
  const Shape& shape = c.node.attrs.get<Shape>("shape");
  const auto& body = c.node.attrs.get<ElementwiseBody>("body");
  if (body.inputs != c.inputs()) {
    throw ShapeError(fmt::format("the body has {} inputs, {} are given", body.inputs, c.inputs()));
  }
  check_steps(c, body);
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const Shape& x = c.input(i).shape;
    bool fits = x.rank() <= shape.rank();
    for (std::size_t back = 1; fits && back <= x.rank(); ++back) {
      const std::int64_t extent = x[x.rank() - back];
      fits = extent == 1 || extent == shape[shape.rank() - back];
    }
    if (!fits) {
      throw ShapeError(fmt::format(
          "input {} of shape {} does not stretch to {}", i, to_string(x), to_string(shape)));
    }
  }
  const auto dtypes = mapped<DType>(
      body.results, [&](int result) { return body.steps[static_cast<std::size_t>(result)].dtype; });
  if (dtypes != c.node.attrs.get<std::vector<DType>>("Tresults")) {
    throw ShapeError("Tresults are not the dtypes of the body's results");
  }
  return std::vector<Shape>(dtypes.size(), shape);
}

}  // namespace

std::size_t elementwise_operands(std::string_view op) {
  const OpDef* def = op_table().find(op);
  return def != nullptr ? def->elementwise : 0;
}

std::vector<OpDef> elementwise_ops() {
  return {define("FusedElementwise",
                 "args: Targs -> results: Tresults",
                 "Targs: list(type), Tresults: list(type), shape: shape, body: elementwise",
                 {.infer = infer_elementwise, .stage = Stage::lowered})};
}

}  // namespace halfstep::graph::ops
