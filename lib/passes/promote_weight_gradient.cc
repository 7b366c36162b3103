#include "passes/promote_weight_gradient.h"

#include <algorithm>
#include <array>

namespace halfstep::passes {
namespace {

using graph::Value;

/// An op that may compute the last value of a weight's gradient.
struct Row {
  std::string_view op;
  bool
      terms;  ///< its operands are gradients of the weight themselves, and are promoted recursively
};

constexpr std::array k_rows{
    Row{"MatMul", false},
    Row{"BatchMatMulV2", false},
    Row{"Conv2DBackpropFilter", false},
    Row{"DepthwiseConv2dNativeBackpropFilter", false},
    Row{"BiasAddGrad", false},
    Row{"Sum", false},
    Row{"Mul", false},
    Row{"AddV2", true},
    Row{"AddN", true},
    Row{"Reshape", true},
    Row{"Transpose", true},
};

const Row* row_of(std::string_view op) {
  const auto* row =
      std::find_if(k_rows.begin(), k_rows.end(), [&](const Row& r) { return r.op == op; });
  return row == k_rows.end() ? nullptr : row;
}

/// A 16-bit term in float32: recomputed in float32 if its op is in the table, else cast.
Value widen_term(graph::Builder& b, Value term) {
  const graph::Node node = b.graph().node(term.node);
  const Row* row = row_of(node.op);
  if (row == nullptr) return b.cast(term, DType::float32);
  std::vector<Value> inputs;
  for (const Value& input : node.inputs) {
    if (b.dtype(input) != b.dtype(term)) {
      inputs.push_back(input);
    } else {
      inputs.push_back(row->terms ? widen_term(b, input) : b.cast(input, DType::float32));
    }
  }
  graph::Attrs attrs = node.attrs;
  attrs.set("T", DType::float32);
  graph::Origin origin = node.origin;
  origin.reason = "weight gradients stay in float32 (precision.grad_dtype)";
  const graph::ScopeGuard scope(b, std::move(origin), "");
  return b.add(node.op, std::move(inputs), std::move(attrs), node.name + "/float32");
}

}  // namespace

Value promote_weight_gradient(graph::Builder& b, Value g) {
  const graph::Node node = b.graph().node(g.node);
  if (b.dtype(g) != DType::float32) return g;
  if (node.op == "Cast") {
    const Value source = node.inputs[0];
    return is_half(b.dtype(source)) ? widen_term(b, source) : g;
  }
  if (node.op != "AddV2" && node.op != "AddN") return g;
  std::vector<Value> inputs;
  for (const Value& input : node.inputs) inputs.push_back(promote_weight_gradient(b, input));
  if (inputs == node.inputs) return g;
  const graph::ScopeGuard scope(b, node.origin, "");
  return b.add(node.op, std::move(inputs), node.attrs, node.name + "/float32");
}

}  // namespace halfstep::passes
