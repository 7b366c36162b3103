#include <algorithm>
#include <tuple>

#include "graph/ops/ops.h"
#include "graph/ops/packed.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Value;

/// The attributes of the PackedMatMul for a MatMul.
graph::Attrs attributes(const graph::Graph& graph,
                        const graph::Node& matmul,
                        std::int64_t partial_products) {
  const DType dtype = matmul.outputs[0].dtype;
  const Shape& y = matmul.outputs[0].shape;
  const bool transpose_a = matmul.attrs.get<bool>("transpose_a");
  return {{"T", dtype},
          {"Tresults", std::vector<DType>{dtype}},
          {"m", y[0]},
          {"n", y[1]},
          {"k", graph.type(matmul.inputs[0]).shape[transpose_a ? 0 : 1]},
          {"products", partial_products}};
}

/// Whether the epilogue of a matmul, or the update of a weight, can write `x` packed, which the
/// passes fuse_packed_epilogue and persist_packed_weights arrange. Any other value needs a launch
/// that packs it.
bool arrives_packed(const graph::Graph& graph, Value x) {
  constexpr int k_max_chain = 8;
  for (int i = 0; i < k_max_chain; ++i) {
    const graph::Node& node = graph.node(x.node);
    if (node.is(graph::ops::k_matmul, graph::ops::k_read_variable_op)) return true;
    const bool in_epilogue = node.is(
        graph::ops::k_cast, graph::ops::k_bias_add, graph::ops::k_relu, graph::ops::k_relu_grad);
    if (!in_epilogue) return false;
    x = node.inputs[0];
  }
  return false;
}

/// Whether share_widened turns the MatMul into a float32 one, for a kernel that beats packing.
bool better_widened(const graph::Graph& graph, const graph::Node& matmul, const Target& target) {
  std::vector<graph::OpInput> inputs = graph::inputs_of(graph, matmul);
  const auto fits = [](const graph::OpInput& x) { return may_be_float32(x.type.shape); };
  if (!target.beats_packing || !target.widens || !may_be_float32(matmul.outputs[0].shape) ||
      !std::all_of(inputs.begin(), inputs.end(), fits) || !target.widens({matmul, inputs})) {
    return false;
  }
  graph::Attrs attrs = matmul.attrs;
  attrs.set("T", DType::float32);
  for (graph::OpInput& x : inputs) x.type.dtype = DType::float32;
  return target.beats_packing(
      graph::describe(graph::op_table(), "MatMul", std::move(inputs), std::move(attrs)));
}

/// Whether the MatMul is to be packed, given the cost of its operands.
bool packs(const graph::Graph& graph,
           const graph::Node& matmul,
           const graph::Attrs& attrs,
           const Target& target) {
  const graph::ops::PackedFormat format = graph::ops::operand_format(attrs);
  graph::Node pack;
  pack.op = "PackOperand";
  const auto operand = [&](std::size_t i, std::string_view rows) {
    const auto m = attrs.get<std::int64_t>(rows), k = attrs.get<std::int64_t>("k");
    const Shape shape{graph::ops::packed_bytes(m, k, format)};
    return graph::OpInput{{DType::uint8, shape},
                          arrives_packed(graph, matmul.inputs[i]) ? nullptr : &pack};
  };
  return target.packing_pays(
      {matmul, graph::inputs_of(graph, matmul)},
      graph::describe(
          graph::op_table(), "PackedMatMul", {operand(0, "m"), operand(1, "n")}, attrs));
}

bool is_float16_convolution(const graph::Node& node) {
  return node.op.starts_with("Conv2D") && node.outputs[0].dtype == DType::float16;
}

}  // namespace

graph::Graph pack_matmuls(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  std::map<std::tuple<Value, DType, std::int64_t, std::string, bool>, Value> packed;
  // The first Reshape of a value to so many rows: queries, keys and values of an attention layer
  // are matmuls of one value, each behind a separate Reshape.
  std::map<std::pair<Value, std::int64_t>, Value> reshaped;
  Value matmul;
  const auto pack = [&](std::size_t input, std::string operand, std::int64_t partial_products) {
    const graph::Node& old = graph.node(matmul.node);
    const auto [dtype, parts] = graph::ops::operand_format(old.outputs[0].dtype, partial_products);
    const bool transpose = old.attrs.get<bool>("transpose_" + operand);
    Value x = old.inputs[input];
    const graph::Node& producer = graph.node(x.node);
    if (producer.is(graph::ops::k_cast) && graph.type(producer.inputs[0]).dtype == DType::float32 &&
        !is_elementwise(graph.node(producer.inputs[0].node))) {
      x = producer.inputs[0];
    }
    if (producer.is(graph::ops::k_reshape)) {
      x = reshaped.try_emplace({producer.inputs[0], graph.type(x).shape[0]}, x).first->second;
    }
    Value& result = packed[{x, dtype, parts, operand, transpose}];
    if (!result.valid()) {
      NewNode node{
          .op = "PackOperand",
          .inputs = {x},
          .attrs = {
              {"dtype", dtype}, {"parts", parts}, {"side", operand}, {"transpose", transpose}}};
      node.name = graph.node(x.node).name + "/pack";
      result = {rewriter.add({std::move(node)}, matmul.node), 0};
    }
    return result;
  };
  rewriter.apply(op(graph::ops::k_matmul).as(matmul), [&]() -> Replacement {
    // The node of the original graph, whose operands show whether they arrive packed.
    const graph::Node& node = graph.node(matmul.node);
    if (!is_half(node.outputs[0].dtype) || node.outputs[0].shape.elements() == 0) return {};
    if (better_widened(graph, node, target)) return {};
    std::vector<std::int64_t> counts{1};
    if (node.outputs[0].dtype == DType::float16) counts = {target.float16_products, 1};
    for (const std::int64_t count : counts) {
      graph::Attrs attrs = attributes(graph, node, count);
      if (!packs(graph, node, attrs, target)) continue;
      const Value left = pack(0, "a", count), right = pack(1, "b", count);
      return {{.op = "PackedMatMul",
               .inputs = {left, right},
               .attrs = std::move(attrs),
               .results = {{matmul}}}};
    }
    return {};
  });
  return prune(rewriter.finish());
}

graph::Graph set_float16_products(const graph::Graph& graph, const Target& target) {
  graph::Graph set = graph;
  for (int id = 0; id < set.size(); ++id) {
    graph::Node& node = set.node(id);
    if (is_float16_convolution(node)) node.attrs.set("float16_products", target.float16_products);
  }
  return set;
}

graph::Graph fuse_packing_into_matmul(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  Value x, pack, matmul;
  const Pattern packed = op(graph::ops::k_pack_operand, {any(x)}).as(pack).used_once();
  rewriter.apply(op(graph::ops::k_packed_matmul, {packed}).as(matmul), [&]() -> Replacement {
    // A variable may be written between the packing and the matmul.
    if (rewriter.node(x).is(graph::ops::k_read_variable_op)) return {};
    const graph::Node& old = rewriter.node(matmul);
    NewNode node{.op = "PackedMatMul", .inputs = old.inputs, .attrs = old.attrs};
    node.inputs[0] = x;
    node.attrs.erase("Ta");
    node.attrs.erase("Targs");
    node.attrs.set("transpose_a", rewriter.node(pack).attrs.get<bool>("transpose"));
    node.results = first_outputs(matmul.node, old.outputs.size());
    return {std::move(node)};
  });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
