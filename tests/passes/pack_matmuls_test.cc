// Lowering of 16-bit matmuls: packed operands, fused epilogues, and ops that stay separate.

#include <doctest/doctest.h>

#include <ostream>
#include <set>
#include <string>
#include <string_view>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;

Graph pack(const Graph& graph,
           const passes::KernelSupport& supports = always,
           std::int64_t products = 3) {
  const auto pays = [&](const graph::OpInstance&, const graph::OpInstance& packed) {
    return supports(packed);
  };
  Graph packed = passes::pack_matmuls(graph, {always, pays, products});
  graph::verify(packed, "pack_matmuls");
  return packed;
}

Graph fuse(const Graph& graph) {
  Graph fused = passes::fuse_packed_epilogue(pack(graph), {});
  graph::verify(fused, "fuse_packed_epilogue");
  return fused;
}

std::set<char> forms(const graph::Node& matmul) {
  const std::string& letters = matmul.attrs.get<std::string>("forms");
  return {letters.begin(), letters.end()};
}

/// Two dense layers with a Relu between them, forward and backward, as differentiation leaves them.
struct TwoLayers {
  Graph graph;
  Value h, y, dw1, dw2, db1;

  explicit TwoLayers(DType dtype = DType::bfloat16) {
    Builder b(graph, graph::op_table());
    const auto input = [&](std::string_view name, Shape shape) {
      return b.placeholder(name, dtype, shape);
    };
    const Value x = input("x", {64, 48}), dy = input("dy", {64, 40});
    const Value w1 = b.cast(b.placeholder("w1", DType::float32, {48, 96}), dtype);
    const Value w2 = b.cast(b.placeholder("w2", DType::float32, {96, 40}), dtype);
    const Value b1 = input("b1", {96}), b2 = input("b2", {40});
    const auto matmul = [&](Value l, Value r, bool tl, bool tr) {
      return b.add("MatMul", {l, r}, {{"transpose_a", tl}, {"transpose_b", tr}});
    };
    h = b.add("Relu", {b.add("BiasAdd", {matmul(x, w1, false, false), b1})});
    y = b.cast(b.add("BiasAdd", {matmul(h, w2, false, false), b2}), DType::float32);
    const Value dh = b.add("ReluGrad", {matmul(dy, w2, false, true), h});
    dw2 = b.cast(matmul(h, dy, true, false), DType::float32);
    dw1 = b.cast(matmul(x, dh, true, false), DType::float32);
    db1 = b.add("BiasAddGrad", {dh});
    graph.fetches() = {{"y", y}, {"dw1", dw1}, {"dw2", dw2}, {"db1", db1}};
  }
};

}  // namespace

TEST_CASE("pack_matmuls: each operand is packed once, straight from float32 where it is cast") {
  const Graph packed = pack(TwoLayers().graph);
  CHECK(count(packed, "MatMul") == 0);
  CHECK(count(packed, "PackedMatMul") == 5);
  // x twice (rows and columns), h twice, dy twice, dh once, w1 once, w2 twice.
  CHECK(count(packed, "PackOperand") == 10);
  for (const graph::Node* node : nodes(packed, "PackOperand")) {
    const bool weight = node->name.starts_with("w") || node->name.starts_with("Cast");
    CHECK(node->attrs.get<DType>("T") == (weight ? DType::float32 : DType::bfloat16));
    CHECK(node->attrs.get<DType>("dtype") == DType::bfloat16);
  }
}

TEST_CASE("pack_matmuls: equal Reshapes of a value are packed once, others each") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", DType::bfloat16, {2, 32, 48});
  const auto rows = [&](std::int64_t m, std::int64_t k) {
    const Value w = b.placeholder("w", DType::bfloat16, {k, 40});
    return b.add("MatMul", {b.add("Reshape", {x, b.ints({m, k})}), w});
  };
  graph.fetches() = {{"query", rows(64, 48)},
                     {"key", rows(64, 48)},
                     {"value", rows(64, 48)},
                     {"other", rows(96, 32)}};
  const Graph packed = pack(graph);
  CHECK(count(packed, "PackedMatMul") == 4);
  std::size_t left = 0;
  for (const graph::Node* node : nodes(packed, "PackOperand")) {
    left += node->attrs.get<std::string>("side") == "a" ? 1 : 0;
  }
  CHECK(left == 2);
}

TEST_CASE("pack_matmuls: what no kernel would run, and float32, stay as they are") {
  const TwoLayers layers;
  const Graph packed = pack(layers.graph, never);
  CHECK(packed.size() == layers.graph.size());
  CHECK(count(packed, "MatMul") == 5);
  const Graph wide = pack(TwoLayers(DType::float32).graph);
  CHECK(count(wide, "MatMul") == 5);
}

TEST_CASE("pack_matmuls: the number of partial products is the float16 matmuls' alone") {
  for (const auto& [dtype, wanted] :
       {std::pair{DType::bfloat16, std::int64_t{1}}, std::pair{DType::float16, std::int64_t{4}}}) {
    const Graph packed = pack(TwoLayers(dtype).graph, always, 4);
    for (const graph::Node* node : nodes(packed, "PackedMatMul")) {
      CHECK(node->attrs.get<std::int64_t>("products") == wanted);
    }
  }
}

TEST_CASE("pack_matmuls: float16 is packed as it is where no kernel takes its parts") {
  const auto whole = [](const graph::OpInstance& op) {
    return op.node.attrs.get<std::int64_t>("products") == 1;
  };
  const Graph packed = pack(TwoLayers(DType::float16).graph, whole, 3);
  CHECK(count(packed, "PackedMatMul") == 5);
  for (const graph::Node* node : nodes(packed, "PackOperand")) {
    CHECK(node->attrs.get<std::int64_t>("parts") == 1);
  }
}

TEST_CASE(
    "pack_matmuls: a matmul that a float32 kernel computes faster from widened operands stays") {
  const auto gradients = [](const graph::OpInstance& op) {
    CHECK(op.node.outputs[0].dtype == DType::float32);
    return op.node.attrs.get<bool>("transpose_a");
  };
  const auto packed = [&](const passes::KernelSupport& widens) {
    const auto pays = [](const graph::OpInstance&, const graph::OpInstance&) { return true; };
    const Graph graph = passes::pack_matmuls(
        TwoLayers(DType::float16).graph,
        {.supports = always, .packing_pays = pays, .widens = widens, .beats_packing = gradients});
    graph::verify(graph, "pack_matmuls");
    return count(graph, "PackedMatMul");
  };
  CHECK(packed(always) == 3);
  CHECK(packed(never) == 5);
}

TEST_CASE("set_float16_products: float16 convolutions are told their partial products") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    Graph graph;
    Builder b(graph, graph::op_table());
    const Value x = b.placeholder("x", dtype, {2, 5, 5, 4});
    const Value w = b.placeholder("w", dtype, {3, 3, 4, 8});
    const graph::Attrs attrs{{"strides", std::vector<std::int64_t>{1, 1, 1, 1}},
                             {"padding", std::string("SAME")}};
    const Value y = b.add("Conv2D", {x, w}, attrs);
    const Value dx = b.add("Conv2DBackpropInput", {b.ints({2, 5, 5, 4}), w, y}, attrs);
    graph.fetches() = {{"dx", dx}};
    const Graph told = passes::set_float16_products(graph, {.float16_products = 4});
    for (const std::string_view op : {"Conv2D", "Conv2DBackpropInput"}) {
      REQUIRE(count(told, op) == 1);
      const auto products = nodes(told, op)[0]->attrs.get<std::int64_t>("float16_products");
      CHECK(products == (dtype == DType::float16 ? 4 : 3));
    }
  }
}

TEST_CASE(
    "fuse_packed_epilogue: bias, activation, mask, sums, casts and packing move into the product") {
  const Graph fused = fuse(TwoLayers().graph);
  for (const std::string_view op : {"BiasAdd", "Relu", "ReluGrad", "BiasAddGrad", "MatMul"}) {
    CAPTURE(op);
    CHECK(count(fused, op) == 0);
  }
  // Operands that no matmul writes packed: x and dy in two orders each, w1, w2 in two.
  CHECK(count(fused, "PackOperand") == 7);
  const auto matmuls = nodes(fused, "PackedMatMul");
  REQUIRE(matmuls.size() == 5);
  // The hidden layer: for the next matmul, for the weight gradient, and its signs.
  CHECK(forms(*matmuls[0]) == std::set<char>{'A', 'T', 'M'});
  CHECK(matmuls[0]->attrs.get<bool>("bias"));
  CHECK(matmuls[0]->attrs.get<std::string>("activation") == "Relu");
  // The scores go to the loss in float32; the weight gradients to the optimizer.
  CHECK(forms(*matmuls[1]) == std::set<char>{'f'});
  CHECK(matmuls[1]->attrs.get<bool>("bias"));
  std::size_t masked = 0;
  for (const graph::Node* matmul : matmuls) {
    if (!matmul->attrs.get<bool>("mask")) continue;
    ++masked;
    CHECK(forms(*matmul) == std::set<char>{'B', 's'});
  }
  CHECK(masked == 1);
}

TEST_CASE(
    "fuse_packed_epilogue: a value that somebody else reads stays, and nothing behind it moves "
    "in") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", DType::bfloat16, {64, 64});
  const Value w = b.placeholder("w", DType::bfloat16, {64, 64});
  const Value matmul = b.add("MatMul", {x, w}, {}, "product");
  const Value relu = b.add("Relu", {matmul}, {}, "relu");
  graph.fetches() = {{"product", matmul}, {"relu", relu}};
  const Graph fused = fuse(graph);
  CHECK(count(fused, "Relu") == 1);
  CHECK(forms(*nodes(fused, "PackedMatMul").at(0)) == std::set<char>{'r'});
}

TEST_CASE("fuse_packed_epilogue: the finite check reads max-norms of the matmuls it checks") {
  TwoLayers layers;
  Builder b(layers.graph, graph::op_table());
  const Value factor = b.placeholder("factor", DType::float32, {});
  // One weight gradient as float32, one in 16 bits, and one that no matmul computes.
  const Value dw1 = layers.graph.node(layers.dw1.node).inputs[0];
  const Value ok =
      b.add("AllFinite", {layers.dw2, dw1, layers.db1, factor}, {{"unscaled", true}}, "finite");
  layers.graph.fetches() = {{"dw2", layers.dw2}, {"dw1", dw1}, {"ok", ok}};
  const Graph fused = fuse(layers.graph);
  const auto checks = nodes(fused, "AllFinite");
  REQUIRE(checks.size() == 1);
  const graph::Node& check = *checks[0];
  CHECK(check.name == "finite");
  CHECK(check.attrs.get<bool>("unscaled"));
  REQUIRE(check.inputs.size() == 4);
  // 96 x 40 and 48 x 96.
  CHECK(fused.type(check.inputs[0]).shape == Shape{3, 2});
  CHECK(fused.type(check.inputs[1]).shape == Shape{2, 3});
  CHECK(fused.type(check.inputs[2]).shape == Shape{96});
  for (const std::size_t i : {0U, 1U}) {
    const graph::Node& matmul = fused.node(check.inputs[i].node);
    CHECK(matmul.op == "PackedMatMul");
    CHECK(forms(matmul) == std::set<char>{i == 0 ? 'f' : 'r', 'n'});
    CHECK(fused.type(check.inputs[i]).dtype == DType::bfloat16);
  }
  CHECK(fused.node(check.inputs[3].node).op == "Placeholder");
}

TEST_CASE("fuse_packed_epilogue: a gradient whose activation is in no matmul keeps its ReluGrad") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value dy = b.placeholder("dy", DType::bfloat16, {64, 64});
  const Value w = b.placeholder("w", DType::bfloat16, {64, 64});
  const Value h = b.placeholder("h", DType::bfloat16, {64, 64});
  const Value dx = b.add("ReluGrad", {b.add("MatMul", {dy, w}), h});
  graph.fetches() = {{"dx", dx}};
  const Graph fused = fuse(graph);
  CHECK(count(fused, "ReluGrad") == 1);
  CHECK_FALSE(nodes(fused, "PackedMatMul").at(0)->attrs.get<bool>("mask"));
}

}  // namespace halfstep::test
