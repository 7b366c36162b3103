// The rewrite of executable step graphs: forward, backward and updates.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>

#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/differentiate.h"
#include "precision/rewrite.h"
#include "support/evaluate.h"
#include "support/tolerance.h"

namespace halfstep::precision {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;

constexpr std::int64_t k_batch = 8;

/// Two dense layers with ReLU between, cross-entropy, gradients, and one step of descent.
Graph step_graph() {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("images", DType::float32, {k_batch, 16});
  const Value labels = b.placeholder("labels", DType::int32, {k_batch});
  for (int id : {x.node, labels.node}) graph.node(id).preserve = true;

  std::vector<Value> handles;
  std::vector<Value> reads;
  const auto variable = [&](std::string name, const Shape& shape) {
    graph::Variable v;
    v.name = std::move(name);
    v.type = {DType::float32, shape};
    handles.push_back(b.variable(v));
    reads.push_back(b.read(handles.back()));
    return reads.back();
  };
  b.origin() = {"dense_1", graph::Phase::forward, "", {}};
  const Value first = b.add(
      "BiasAdd",
      {b.add("MatMul", {x, variable("dense_1/kernel", {16, 12})}), variable("dense_1/bias", {12})});
  const Value hidden = b.add("Relu", {first});
  b.origin() = {"dense_2", graph::Phase::forward, "", {}};
  const Value logits = b.add("BiasAdd",
                             {b.add("MatMul", {hidden, variable("dense_2/kernel", {12, 4})}),
                              variable("dense_2/bias", {4})});
  b.origin() = {"", graph::Phase::loss, "", {}};
  const Value each = b.add("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
  const Value loss = graph::ops::reduce(b, "Mean", each);
  b.origin() = {"", graph::Phase::backward, "", {}};
  const std::vector<Value> gradients = passes::differentiate(b, loss, reads);
  b.origin() = {"", graph::Phase::update, "", {}};
  const Value rate = b.scalar(DType::float32, 0.5);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    b.add_node("ResourceApplyGradientDescent", {handles[i], rate, gradients[i]});
  }
  graph.fetches().emplace_back("loss", loss);
  graph.fetches().emplace_back("logits", logits);
  return graph;
}

struct Outcome {
  double loss = 0;
  testing::Tensors variables;
};

Outcome run(const Graph& graph) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-0.25F, 0.25F);
  testing::Tensors feeds;
  testing::Tensors variables;
  feeds["images"] = Tensor(DType::float32, {k_batch, 16});
  for (float& value : feeds["images"].span<float>()) value = uniform(random) * 4;
  feeds["labels"] = Tensor(DType::int32, {k_batch});
  for (std::int32_t& label : feeds["labels"].span<std::int32_t>()) {
    label = static_cast<std::int32_t>(random() % 4);
  }
  for (const graph::Variable& variable : graph.variables()) {
    Tensor tensor(DType::float32, variable.type.shape);
    for (float& value : tensor.span<float>()) value = uniform(random);
    variables[variable.name] = std::move(tensor);
  }
  const std::vector<Value> fetches{graph.fetch("loss")};
  std::vector<Tensor> results =
      testing::evaluate(graph, backend::cpu_reference(), fetches, feeds, variables);
  return {results[0].span<float>()[0], std::move(variables)};
}

RewriteResult rewritten(DType target) {
  RewriteResult result = rewrite(step_graph(), graph::op_table(), training_options(target));
  REQUIRE(result.status == RewriteStatus::ok);
  return result;
}

}  // namespace

TEST_CASE("executable: a rewritten step graph is legal and keeps its layers and shapes") {
  const Graph given = step_graph();
  graph::verify(given, "building");
  for (DType target : {DType::float16, DType::bfloat16}) {
    CAPTURE(name(target));
    const RewriteResult result = rewritten(target);
    graph::verify(result.graph, "the rewrite");
    CHECK(result.graph.variables().size() == given.variables().size());
    REQUIRE(result.nodes.size() == static_cast<std::size_t>(given.size()));
    for (int id = 0; id < given.size(); ++id) {
      const graph::Node& was = given.node(id);
      const graph::Node& is = result.graph.node(result.nodes[static_cast<std::size_t>(id)]);
      CAPTURE(was.name);
      CHECK(is.name == was.name);
      CHECK(is.origin.layer == was.origin.layer);
      CHECK(is.origin.phase == was.origin.phase);
      REQUIRE(is.outputs.size() == was.outputs.size());
      for (std::size_t i = 0; i < is.outputs.size(); ++i) {
        CHECK(is.outputs[i].shape == was.outputs[i].shape);
      }
    }
    // A cast has an explanation too.
    for (const InsertedCast& cast : result.casts) {
      const graph::Node& node = result.graph.node(cast.node);
      CHECK_FALSE(node.origin.reason.empty());
      CHECK(node.outputs[0].shape == result.graph.type(node.inputs[0]).shape);
    }
  }
}

TEST_CASE("executable: matmuls are converted in both directions, updates and weights are not") {
  for (DType target : {DType::float16, DType::bfloat16}) {
    CAPTURE(name(target));
    const RewriteResult result = rewritten(target);
    int matmuls = 0;
    for (int id = 0; id < result.graph.size(); ++id) {
      const graph::Node& node = result.graph.node(id);
      if (node.op == "MatMul") {
        ++matmuls;
        CHECK(node.attrs.get<DType>("T") == target);
        CHECK(node.outputs[0].dtype == target);
      }
      if (node.op == "ResourceApplyGradientDescent") {
        CHECK(node.attrs.get<DType>("T") == DType::float32);
      }
      if (node.op == "ReadVariableOp") CHECK(node.outputs[0].dtype == DType::float32);
    }
    CHECK(matmuls == 6);  // two forward, and two gradients of each
  }
}

TEST_CASE("executable: fetches keep their dtypes") {
  for (DType target : {DType::float16, DType::bfloat16}) {
    const RewriteResult result = rewritten(target);
    for (std::string_view fetch : {"loss", "logits"}) {
      CHECK(result.graph.type(result.graph.fetch(fetch)).dtype == DType::float32);
    }
  }
}

TEST_CASE("executable: a rewritten step gives float32's results within 16-bit tolerance") {
  const Outcome exact = run(step_graph());
  for (DType target : {DType::float16, DType::bfloat16}) {
    CAPTURE(name(target));
    const Outcome half = run(rewritten(target).graph);
    // On the path to the loss: inputs, kernels and two matmuls rounded, sums of at most 16 terms of
    // magnitude 1/4 whose roundings have either sign.
    const double allowed = testing::tolerance(target, target, 8, 1, 1);
    CHECK(std::abs(half.loss - exact.loss) < allowed);
    CHECK(half.loss != exact.loss);
    for (const auto& [variable, tensor] : exact.variables) {
      CAPTURE(variable);
      const auto want = tensor.span<float>();
      const auto got = half.variables.at(variable).span<float>();
      double worst = 0;
      for (std::size_t i = 0; i < want.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
      }
      CHECK(worst < allowed);
    }
  }
}

}  // namespace halfstep::precision
