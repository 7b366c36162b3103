// Fusion of ops into the epilogues of library matmuls: which ops, under which epilogue, and which
// not.

#include <doctest/doctest.h>

#include <ostream>
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
using graph::Node;
using graph::Value;

Graph fuse(const Graph& graph, const passes::KernelSupport& supports = always) {
  Graph fused = passes::fuse_library_epilogue(graph, {supports});
  graph::verify(fused, "fuse_library_epilogue");
  return fused;
}

/// The fused matmul with this epilogue; nullptr if there is none.
const Node* ending(const Graph& graph, std::string_view epilogue) {
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == "FusedMatMul" && node.attrs.get<std::string>("epilogue") == epilogue) {
      return &node;
    }
  }
  return nullptr;
}

/// Two dense layers with a Relu between them, forward and backward, as differentiation leaves them:
/// a bias gradient and its cast precede the matmul that they can be fused into.
struct TwoLayers {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value x, dy, w1, w2, h, y, dh;

  explicit TwoLayers(DType dtype) {
    x = b.placeholder("x", dtype, {64, 48});
    dy = b.placeholder("dy", dtype, {64, 40});
    w1 = b.placeholder("w1", dtype, {48, 96});
    w2 = b.placeholder("w2", dtype, {96, 40});
    const Value b1 = b.placeholder("b1", dtype, {96}), b2 = b.placeholder("b2", dtype, {40});
    h = b.add("Relu", {b.add("BiasAdd", {matmul(x, w1, false, false), b1})}, {}, "hidden");
    y = b.add("BiasAdd", {matmul(h, w2, false, false), b2}, {}, "logits");
    const Value db2 = b.cast(b.add("BiasAddGrad", {dy}), DType::float32);
    dh = b.add("ReluGrad", {matmul(dy, w2, false, true), h}, {}, "dh");
    const Value dw2 = matmul(h, dy, true, false);
    const Value db1 = b.add("BiasAddGrad", {dh});
    const Value dw1 = matmul(x, dh, true, false);
    graph.fetches() = {{"y", y}, {"dw1", dw1}, {"dw2", dw2}, {"db1", db1}, {"db2", db2}};
  }

  Value matmul(Value l, Value r, bool tl, bool tr) {
    return b.add("MatMul", {l, r}, {{"transpose_a", tl}, {"transpose_b", tr}});
  }
};

}  // namespace

TEST_CASE("fuse_library_epilogue: each dense layer is one matmul forward and two backward") {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    CAPTURE(name(dtype));
    const Graph fused = fuse(TwoLayers(dtype).graph);
    for (const char* gone : {"BiasAdd", "Relu", "ReluGrad", "BiasAddGrad"}) {
      CAPTURE(gone);
      CHECK(count(fused, gone) == 0);
    }
    CHECK(count(fused, "FusedMatMul") == 4);
    // x^T dh has no bias gradient left to take.
    CHECK(count(fused, "MatMul") == 1);
    const Node* writes = ending(fused, "bias_relu_mask");
    const Node* reads = ending(fused, "relu_gradient_bias_gradient");
    REQUIRE(writes != nullptr);
    REQUIRE(reads != nullptr);
    CHECK(writes->name == "hidden");
    CHECK(reads->name == "dh");
    CHECK(writes->attrs.get<std::int64_t>("partner_k") == 40);
    CHECK(reads->attrs.get<std::int64_t>("partner_k") == 48);
    CHECK(reads->inputs[2] == Value{fused.find("hidden"), 1});
    CHECK(reads->inputs[3] == Value{fused.find("hidden"), 0});
    REQUIRE(ending(fused, "bias") != nullptr);
    CHECK(ending(fused, "bias")->name == "logits");
    CHECK(ending(fused, "sums_of_b") != nullptr);
    CHECK(fused.fetch("db1") == Value{fused.find("dh"), 1});
  }
}

TEST_CASE("fuse_library_epilogue: what no kernel takes stays as it is") {
  const TwoLayers layers(DType::float16);
  const Graph none = fuse(layers.graph, never);
  CHECK(count(none, "FusedMatMul") == 0);
  CHECK(none.size() == layers.graph.size());

  // A mask that nothing writes cannot be read.
  const Graph unmasked = fuse(layers.graph, [](const graph::OpInstance& op) {
    return op.node.attrs.get<std::string>("epilogue") != "bias_relu_mask";
  });
  CHECK(count(unmasked, "ReluGrad") == 1);
  CHECK(ending(unmasked, "bias_relu") != nullptr);
  CHECK(ending(unmasked, "relu_gradient_bias_gradient") == nullptr);
  // Its bias gradient still goes with the weights'.
  CHECK(count(unmasked, "BiasAddGrad") == 0);
}

TEST_CASE("fuse_library_epilogue: values that others read stay values") {
  TwoLayers layers(DType::float16);
  // The sum before the Relu and the gradient before its mask are fetched.
  const Value sum = layers.graph.node(layers.h.node).inputs[0];
  const Value unmasked = layers.graph.node(layers.dh.node).inputs[0];
  layers.graph.fetches().push_back({"sum", sum});
  layers.graph.fetches().push_back({"unmasked", unmasked});
  const Graph fused = fuse(layers.graph);
  CHECK(count(fused, "Relu") == 1);
  CHECK(count(fused, "ReluGrad") == 1);
  CHECK(ending(fused, "bias_relu_mask") == nullptr);
  CHECK(fused.fetch("sum").port == 0);
}

TEST_CASE("fuse_library_epilogue: a bias gradient stays where the product's operands come later") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value dy = b.placeholder("dy", DType::float16, {64, 40});
  const Value db = b.add("BiasAddGrad", {dy});
  const Value norm = b.add("Neg", {db});
  const Value x = b.add("Neg", {b.placeholder("x", DType::float16, {64, 8})});
  const Value dw = b.add("MatMul", {x, dy}, {{"transpose_a", true}});
  graph.fetches() = {{"norm", norm}, {"dw", dw}};
  const Graph fused = fuse(graph);
  CHECK(count(fused, "BiasAddGrad") == 1);
  CHECK(count(fused, "MatMul") == 1);
  // Without the reader between them both are computed where the operands are.
  graph.fetches() = {{"db", db}, {"dw", dw}};
  CHECK(count(fuse(passes::prune(graph)), "BiasAddGrad") == 0);
}

TEST_CASE(
    "fuse_library_epilogue: the bias gradient of a sequence goes with the weights' of its rows") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value dy = b.placeholder("dy", DType::float16, {4, 16, 40});
  const auto reshaped = [&](const std::vector<std::int64_t>& shape) {
    return b.add("Reshape", {dy, b.ints(shape)});
  };
  const auto fetch = [&](Value rows, std::int64_t count) {
    const Value x = b.placeholder("x" + std::to_string(count), DType::float16, {count, 8});
    graph.fetches() = {{"db", b.add("BiasAddGrad", {dy})},
                       {"dw", b.add("MatMul", {x, rows}, {{"transpose_a", true}})}};
  };
  fetch(reshaped({64, 40}), 64);
  const Graph fused = fuse(graph);
  CHECK(count(fused, "BiasAddGrad") == 0);
  REQUIRE(ending(fused, "sums_of_b") != nullptr);
  // Rows of another length have other sums.
  fetch(reshaped({128, 20}), 128);
  CHECK(count(fuse(passes::prune(graph)), "BiasAddGrad") == 1);
}

TEST_CASE("fuse_library_epilogue: a bias behind the Reshape of rows to steps moves before it") {
  for (const bool activated : {false, true}) {
    for (const Shape& steps : {Shape{8, 4, 6}, Shape{8, 2, 12}}) {
      CAPTURE(activated);
      CAPTURE(to_string(steps));
      Graph graph;
      Builder b{graph, graph::op_table()};
      const Value x = b.placeholder("x", DType::float16, {32, 5});
      const Value w = b.placeholder("w", DType::float16, {5, 6});
      const Value bias = b.placeholder("bias", DType::float16, {steps.back()});
      const Value matmul = b.add("MatMul", {x, w});
      Value y = b.add("BiasAdd", {graph::ops::reshape(b, matmul, steps), bias});
      if (activated) y = b.add("Relu", {y});
      graph.fetches() = {{"y", y}};
      const Graph fused = fuse(graph);
      // Otherwise the bias is not one of the matmul's columns.
      const bool moved = steps.back() == 6;
      CHECK((ending(fused, activated ? "bias_relu" : "bias") != nullptr) == moved);
      CHECK(count(fused, "BiasAdd") == (moved ? 0 : 1));
      CHECK(count(fused, "Relu") == (activated && !moved ? 1 : 0));
      CHECK(fused.type(fused.fetches()[0].second) == graph.type(y));
    }
  }
}

}  // namespace halfstep::test
