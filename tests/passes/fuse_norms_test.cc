// Normalizations and the activations after them: which ops are fused and which not.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "graph/text.h"
#include "passes/differentiate.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;

Graph fuse(const Graph& graph, const passes::KernelSupport& supports = always) {
  Graph fused = passes::fuse_norms(graph, {supports});
  graph::verify(fused, "fuse_norms");
  return fused;
}

/// x normalized, with a side input perhaps, behind a Relu; the gradients of all; a reader of the
/// statistics.
struct Block {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value x, side, scale, offset, y, relu;

  /// `ranks`: normalized by the moments of several ranks.
  explicit Block(bool add, bool training = true, bool ranks = false) {
    const Shape image{2, 4, 4, 3};
    x = b.placeholder("x", DType::bfloat16, image);
    side = b.placeholder("side", DType::bfloat16, image);
    scale = b.placeholder("scale", DType::float32, {3});
    offset = b.placeholder("offset", DType::float32, {3});
    const Value mean = b.placeholder("mean", DType::float32, {3});
    const Value variance = b.placeholder("variance", DType::float32, {3});
    graph::Attrs attrs{{"epsilon", 0.001}};
    attrs.set(ranks ? "rows" : "is_training",
              ranks ? graph::AttrValue(std::int64_t{64}) : graph::AttrValue(training));
    if (ranks) attrs.set("ranks", std::int64_t{2});
    const int norm = b.add_node(ranks ? "NormalizeByMoments" : "FusedBatchNormV3",
                                {x, scale, offset, mean, variance},
                                std::move(attrs),
                                "norm");
    y = {norm, 0};
    relu = b.add("Relu", {add ? b.add("AddV2", {side, y}, {}, "sum") : y}, {}, "relu");
    graph.fetches() = {{"relu", relu}};
    if (!ranks) graph.fetches().push_back({"mean", b.add("Neg", {Value{norm, 1}})});
  }

  void differentiate() {
    const Value loss = graph::ops::reduce(b, "Sum", b.cast(relu, DType::float32));
    const Value xs[] = {x, side, scale, offset};
    const std::vector<Value> gradients = passes::differentiate(b, loss, xs);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].valid()) graph.fetches().push_back({std::to_string(i), gradients[i]});
    }
  }
};

}  // namespace

TEST_CASE("fuse_norms: the Relu moves into the normalization and its gradient") {
  for (const bool training : {true, false}) {
    CAPTURE(training);
    Block block(false, training);
    block.differentiate();
    REQUIRE(count(block.graph, "ReluGrad") == 1);
    const Graph fused = fuse(block.graph);
    for (std::string_view op : {"FusedBatchNormV3", "FusedBatchNormGradV3", "Relu", "ReluGrad"}) {
      CAPTURE(op);
      CHECK(count(fused, op) == 0);
    }
    CHECK(count(fused, "BatchNormReluGrad") == 1);
    const int id = fused.find("relu");
    REQUIRE(id >= 0);
    CHECK(fused.node(id).op == "_FusedBatchNormEx");
    CHECK(fused.node(id).attrs.get<std::string>("activation_mode") == "Relu");
    CHECK(fused.node(id).attrs.get<bool>("is_training") == training);
    CHECK(fused.node(id).inputs.size() == 5);
  }
}

TEST_CASE(
    "fuse_norms: the Relu moves into a synchronized normalization and both of its gradients") {
  for (const bool add : {false, true}) {
    CAPTURE(add);
    Block block(add, true, true);
    block.differentiate();
    const Graph fused = fuse(block.graph);
    CHECK(count(fused, "Relu") == 0);
    CHECK(count(fused, "AddV2") == 0);
    const int id = fused.find("relu");
    REQUIRE(id >= 0);
    const graph::Node& norm = fused.node(id);
    CHECK(norm.op == "NormalizeByMoments");
    CHECK(norm.attrs.get<std::string>("activation_mode") == "Relu");
    CHECK(norm.inputs.size() == (add ? 6 : 5));
    // The mask cannot be computed again from x alone where there was a sum.
    CHECK(count(fused, "ReluGrad") == (add ? 1 : 0));
    for (int other = 0; other < fused.size(); ++other) {
      const graph::Node& node = fused.node(other);
      const auto relu_inputs = [&] { return node.attrs.get<std::int64_t>("num_relu_inputs"); };
      if (node.op == "BatchNormGradSums") CHECK(relu_inputs() == (add ? 0 : 2));
      if (node.op == "NormalizeByMomentsGrad") CHECK(relu_inputs() == (add ? 0 : 1));
    }
    CHECK(count(fused, "BatchNormGradSums") == 1);
    CHECK(count(fused, "NormalizeByMomentsGrad") == 1);
    // Not fused a second time.
    CHECK(graph::print_graph(fuse(fused)) == graph::print_graph(fused));
  }
}

TEST_CASE("fuse_norms: a sum and its Relu move in; the gradient of the sum stays outside") {
  Block block(true);
  block.differentiate();
  const Graph fused = fuse(block.graph);
  CHECK(count(fused, "Relu") == 0);
  CHECK(count(fused, "AddV2") == 0);
  CHECK(count(fused, "ReluGrad") == 1);
  CHECK(count(fused, "FusedBatchNormGradV3") == 1);
  const int id = fused.find("relu");
  REQUIRE(id >= 0);
  REQUIRE(fused.node(id).inputs.size() == 6);
  CHECK(fused.node(fused.node(id).inputs[5].node).name == "side");
}

TEST_CASE("fuse_norms: what no kernel would run stays as it is") {
  Block block(false);
  block.differentiate();
  const Graph fused = fuse(block.graph, never);
  CHECK(count(fused, "Relu") == 1);
  CHECK(count(fused, "ReluGrad") == 1);
  CHECK(count(fused, "FusedBatchNormGradV3") == 1);
}

TEST_CASE("fuse_norms: a normalized value that somebody else reads stays") {
  for (const bool add : {false, true}) {
    CAPTURE(add);
    Block block(add);
    block.graph.fetches().push_back({"y", block.y});
    const Graph fused = fuse(block.graph);
    CHECK(count(fused, "FusedBatchNormV3") == 1);
    CHECK(count(fused, "Relu") == 1);
  }
}

TEST_CASE("fuse_norms: a side input that comes later, or is spread, stays outside") {
  Block block(false);
  Builder& b = block.b;
  const auto norm = [&] {
    return Value{b.add_node("FusedBatchNormV3",
                            {block.x, block.scale, block.offset, block.scale, block.offset}),
                 0};
  };
  const Value first = norm();
  const Value later = b.add("Neg", {block.side});
  const Value spread = b.placeholder("spread", DType::bfloat16, {3});
  graph::Graph& graph = block.graph;
  graph.fetches() = {{"later", b.add("Relu", {b.add("AddV2", {first, later})})},
                     {"spread", b.add("Relu", {b.add("AddV2", {norm(), spread})})}};
  CHECK(count(fuse(graph), "_FusedBatchNormEx") == 0);
}

TEST_CASE("fuse_norms: a ReluGrad whose result goes elsewhere too stays") {
  Block block(false);
  block.differentiate();
  for (int id = 0; id < block.graph.size(); ++id) {
    if (block.graph.node(id).op == "ReluGrad") block.graph.fetches().push_back({"g", {id, 0}});
  }
  const Graph fused = fuse(block.graph);
  CHECK(count(fused, "ReluGrad") == 1);
  CHECK(count(fused, "FusedBatchNormGradV3") == 1);
  CHECK(count(fused, "_FusedBatchNormEx") == 1);
}

namespace {

/// A residual block: sum = x + f, y = LayerNorm(sum), of which `readers` are taken and added with
/// the sum; the gradients of x and f.
struct ResidualBlock {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value x, f, gamma, beta, sum, y;

  explicit ResidualBlock(int readers) {
    x = b.placeholder("x", DType::float16, {2, 4, 8});
    f = b.placeholder("f", DType::float16, {2, 4, 8});
    gamma = b.placeholder("gamma", DType::float32, {8});
    beta = b.placeholder("beta", DType::float32, {8});
    sum = b.add("AddV2", {x, f}, {}, "sum");
    y = {b.add_node("LayerNorm", {sum, gamma, beta}, {}, "norm"), 0};
    Value last = sum;
    for (int i = 0; i < readers; ++i) {
      const Value weight = b.placeholder("w" + std::to_string(i), DType::float16, {2, 8, 8});
      last = b.add("AddV2", {last, b.add("BatchMatMulV2", {y, weight})});
    }
    const Value loss = graph::ops::reduce(b, "Sum", b.cast(last, DType::float32));
    const Value xs[] = {x, f, gamma, beta};
    const std::vector<Value> gradients = passes::differentiate(b, loss, xs);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      graph.fetches().push_back({std::to_string(i), gradients[i]});
    }
    graph.fetches().push_back({"last", last});
  }
};

}  // namespace

TEST_CASE("fuse_norms: the sums around a layer normalization move into it and its gradient") {
  for (const int readers : {1, 3}) {
    CAPTURE(readers);
    const ResidualBlock block(readers);
    const Graph fused = fuse(block.graph);
    const graph::Node& norm = *nodes(fused, "LayerNorm").at(0);
    CHECK(norm.attrs.get<std::int64_t>("num_addends") == 1);
    REQUIRE(norm.outputs.size() == 4);
    CHECK(norm.outputs[3] == block.graph.type(block.sum));
    CHECK(fused.find("sum") < 0);
    const graph::Node& gradient = *nodes(fused, "LayerNormGrad").at(0);
    CHECK(gradient.attrs.get<std::int64_t>("x_addends") == 1);
    CHECK(gradient.attrs.get<std::int64_t>("num_addends") == readers);
    CHECK(count(fused, "AddN") == 0);
    // The gradient's x is the sum that the normalization stores.
    CHECK(gradient.inputs[1] == Value{fused.find(norm.name), 3});
    // Those of the readers are left.
    CHECK(count(fused, "AddV2") == static_cast<std::size_t>(readers));
    CHECK(graph::print_graph(fuse(fused)) == graph::print_graph(fused));
    CHECK(count(fuse(block.graph, never), "AddV2") == static_cast<std::size_t>(readers) + 2);
  }
}

TEST_CASE("fuse_norms: which sums stay outside a layer normalization") {
  enum class Sum { broadcast, read_before, elementwise, fetched };
  for (const Sum kind : {Sum::broadcast, Sum::read_before, Sum::elementwise, Sum::fetched}) {
    CAPTURE(static_cast<int>(kind));
    Graph graph;
    Builder b{graph, graph::op_table()};
    const Value x = b.placeholder("x", DType::float32, {2, 4, 8});
    const Value gamma = b.placeholder("gamma", DType::float32, {8});
    const Value rows = b.placeholder("rows", DType::float32, {4, 8});
    const Value addend = kind == Sum::broadcast ? b.add("BroadcastTo", {rows, b.ints({2, 4, 8})})
                         : kind == Sum::elementwise ? b.add("Neg", {x})
                                                    : rows;
    const Value sum = b.add("AddV2", {addend, x});
    if (kind == Sum::read_before) graph.fetches().push_back({"early", b.add("Neg", {sum})});
    if (kind == Sum::fetched) graph.fetches().push_back({"sum", sum});
    graph.fetches().push_back({"y", {b.add_node("LayerNorm", {sum, gamma, gamma}), 0}});
    const Graph fused = fuse(graph);
    const bool outside = kind == Sum::read_before || kind == Sum::elementwise;
    CHECK(count(fused, "AddV2") == (outside ? 1 : 0));
    CHECK(count(fused, "BroadcastTo") == 0);
    const graph::Node& norm = *nodes(fused, "LayerNorm").at(0);
    CHECK(norm.inputs.size() == (outside ? 3 : 4));
    if (!outside) CHECK(norm.inputs[0].node == fused.find("x"));
  }
}

}  // namespace halfstep::test
