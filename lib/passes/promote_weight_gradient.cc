#include "graph/op_handles.h"
#include "passes/differentiate.h"

namespace halfstep::passes {
namespace {

using graph::Value;

/// A 16-bit term in float32: recomputed in float32 if its op can be promoted, else cast.
Value promote_term(graph::Builder& b, Value term) {
  const graph::Node node = b.graph().node(term.node);
  if (node.def->promotion == graph::Promotion::none) return b.cast(term, DType::float32);
  std::vector<Value> inputs;
  for (const Value& input : node.inputs) {
    if (b.dtype(input) != b.dtype(term)) {
      inputs.push_back(input);
    } else {
      inputs.push_back(node.def->promotion == graph::Promotion::terms
                           ? promote_term(b, input)
                           : b.cast(input, DType::float32));
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
  if (node.is(graph::ops::k_cast)) {
    const Value source = node.inputs[0];
    return is_half(b.dtype(source)) ? promote_term(b, source) : g;
  }
  if (!node.is(graph::ops::k_add_v2, graph::ops::k_add_n)) return g;
  std::vector<Value> inputs;
  for (const Value& input : node.inputs) inputs.push_back(promote_weight_gradient(b, input));
  if (inputs == node.inputs) return g;
  const graph::ScopeGuard scope(b, node.origin, "");
  return b.add(node.op, std::move(inputs), node.attrs, node.name + "/float32");
}

}  // namespace halfstep::passes
