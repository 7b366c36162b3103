#include "passes/rewriter.h"

namespace halfstep::passes {

graph::Graph fuse_packing_into_matmul(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  graph::Value x, pack, product;
  const Pattern packed = op(graph::ops::k_pack_operand, {any(x)}).as(pack).used_once();
  rewriter.apply(op(graph::ops::k_packed_matmul, {packed}).as(product), [&]() -> Replacement {
    // A variable may be written between the packing and the matmul.
    if (rewriter.node(x).is(graph::ops::k_read_variable_op)) return {};
    const graph::Node& old = rewriter.node(product);
    NewNode node{.op = "PackedMatMul", .inputs = old.inputs, .attrs = old.attrs};
    node.inputs[0] = x;
    node.attrs.erase("Ta");
    node.attrs.erase("Targs");
    node.attrs.set("transpose_a", rewriter.node(pack).attrs.get<bool>("transpose"));
    node.results = first_outputs(product.node, old.outputs.size());
    return {std::move(node)};
  });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
