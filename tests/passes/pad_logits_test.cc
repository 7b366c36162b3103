// Rows of logits, weights and gradients at multiples of 16 bytes.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Value;

/// Two dense layers, their loss and the update of all weights, as group_updates leaves them.
struct Step {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value logits, gradient, weight_gradient;

  explicit Step(std::int64_t classes = 10, DType dtype = DType::float16) {
    const std::vector<DType> halves{dtype, dtype};
    const auto matmul = [&](std::vector<Value> inputs,
                            std::string_view epilogue,
                            const std::vector<DType>& results,
                            bool transpose_a = false,
                            bool transpose_b = false,
                            std::int64_t partner_k = 0) {
      return b.add_node("FusedMatMul",
                        std::move(inputs),
                        {{"epilogue", std::string(epilogue)},
                         {"Tresults", results},
                         {"transpose_a", transpose_a},
                         {"transpose_b", transpose_b},
                         {"partner_k", partner_k}});
    };
    const auto variable = [&](const char* name, const Shape& shape) {
      graph::Variable made;
      made.name = name;
      made.type.shape = shape;
      handles.push_back(b.variable(std::move(made)));
      copies.push_back(dtype == DType::float32
                           ? b.add("ReadVariableOp", {handles.back()}, {{"dtype", dtype}})
                           : b.add("CastVariable", {handles.back()}, {{"DstT", dtype}}));
    };
    variable("hidden/kernel", {5, 4});
    variable("hidden/bias", {4});
    variable("logits/kernel", {4, classes});
    variable("logits/bias", {classes});
    const Value x = b.placeholder("x", dtype, {6, 5});
    const int hidden = matmul(
        {x, copies[0], copies[1]}, "bias_relu_mask", {dtype, DType::uint8}, false, false, classes);
    logits = {matmul({{hidden, 0}, copies[2], copies[3]}, "bias", {dtype}), 0};
    const int loss = b.add_node("SoftmaxLoss",
                                {logits,
                                 b.placeholder("labels", DType::int32, {6}),
                                 b.placeholder("seed", DType::float32, {})},
                                {{"forms", std::string("pmg")},
                                 {"Tresults", std::vector{DType::float32, DType::float32, dtype}}});
    graph.fetches() = {{"outputs", {loss, 0}}, {"loss", {loss, 1}}};
    gradient = {loss, 2};
    const int weights = matmul({{hidden, 0}, gradient}, "sums_of_b", halves, true);
    weight_gradient = {weights, 0};
    const int masked = matmul({gradient, copies[2], {hidden, 1}, {hidden, 0}},
                              "relu_gradient_bias_gradient",
                              halves,
                              false,
                              true,
                              5);
    const Value first =
        b.add("MatMul", {x, {masked, 0}}, {{"transpose_a", true}, {"transpose_b", false}});
    const std::vector<Value> gradients{first, {masked, 1}, {weights, 0}, {weights, 1}};
    ok = b.add("AllFinite", gradients);
    std::vector<Value> inputs = handles;
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    const bool copied = dtype != DType::float32;
    if (copied) inputs.insert(inputs.end(), copies.begin(), copies.end());
    inputs.push_back(b.scalar(DType::float32, 0.5));
    inputs.push_back(ok);
    b.add_node("GroupedUpdate",
               std::move(inputs),
               {{"rule", std::string("ResourceApplyGradientDescent")},
                {"copies", std::vector<std::int64_t>(4, copied ? 1 : 0)},
                {"guarded", true}});
  }
  Graph padded(std::int64_t multiple = 8) const {
    passes::Target target{.supports = always};
    target.row_multiple = multiple;
    Graph result = passes::pad_logits(graph, target);
    graph::verify(result, "pad_logits");
    return result;
  }

  std::vector<Value> handles, copies;
  Value ok;
};

/// Whether padding leaves the graph as it was.
bool unchanged(const Step& step, std::int64_t multiple = 8) {
  return outline(step.padded(multiple)) == outline(step.graph);
}

}  // namespace

TEST_CASE("pad_logits: the logits, their layer's copies and all gradients get longer rows") {
  const Step step;
  const Graph padded = step.padded();
  CHECK(outline(padded) == outline(step.graph));  // the same nodes under the same names
  const auto shape = [&](std::string_view op, std::size_t which, int port = 0) {
    return nodes(padded, op).at(which)->outputs.at(static_cast<std::size_t>(port)).shape;
  };
  CHECK(shape("CastVariable", 0) == Shape{5, 4});
  CHECK(shape("CastVariable", 1) == Shape{4});
  CHECK(shape("CastVariable", 2) == Shape{4, 16});
  CHECK(shape("CastVariable", 3) == Shape{16});
  CHECK(shape("FusedMatMul", 0) == Shape{6, 4});
  CHECK(shape("FusedMatMul", 1) == Shape{6, 16});
  CHECK(shape("FusedMatMul", 2) == Shape{4, 16});
  CHECK(shape("FusedMatMul", 2, 1) == Shape{16});
  CHECK(shape("FusedMatMul", 3) == Shape{6, 4});
  CHECK(nodes(padded, "SoftmaxLoss").at(0)->attrs.get<std::int64_t>("classes") == 10);
  CHECK(shape("SoftmaxLoss", 0, 0) == Shape{6, 10});
  CHECK(shape("SoftmaxLoss", 0, 2) == Shape{6, 16});
  // The matmuls that share a mask agree on the length of the other one's sums.
  CHECK(nodes(padded, "FusedMatMul").at(0)->attrs.get<std::int64_t>("partner_k") == 16);
}

TEST_CASE("pad_logits: an evaluation has no gradients to pad") {
  Step step;
  Graph graph;
  Builder b(graph, graph::op_table());
  graph::Variable kernel;
  kernel.name = "kernel";
  kernel.type.shape = Shape{4, 10};
  const Value copy =
      b.add("CastVariable", {b.variable(std::move(kernel))}, {{"DstT", DType::bfloat16}});
  const Value logits = b.add("MatMul",
                             {b.placeholder("x", DType::bfloat16, {6, 4}), copy},
                             {{"transpose_a", false}, {"transpose_b", false}});
  graph.fetches() = {
      {"loss",
       b.add("SoftmaxLoss",
             {logits, b.placeholder("labels", DType::int32, {6})},
             {{"forms", std::string("m")}, {"Tresults", std::vector{DType::float32}}})}};
  step.graph = graph;
  const Graph padded = step.padded();
  CHECK(nodes(padded, "MatMul").at(0)->outputs[0].shape == Shape{6, 16});
  CHECK(nodes(padded, "CastVariable").at(0)->outputs[0].shape == Shape{4, 16});
}

TEST_CASE("pad_logits: rows stay as they are where they are multiples, wide, or read elsewhere") {
  CHECK(unchanged(Step(16)));
  CHECK(unchanged(Step(), 1));
  CHECK(unchanged(Step(10, DType::float32)));
  const auto fetched = [](auto value_of) {
    Step step;
    step.graph.fetches().emplace_back("other", value_of(step));
    const Graph padded = step.padded();
    return nodes(padded, "SoftmaxLoss").at(0)->attrs.get<std::int64_t>("classes") == 0;
  };
  CHECK_FALSE(fetched([](const Step& step) { return step.ok; }));
  CHECK(fetched([](const Step& step) { return step.logits; }));
  CHECK(fetched([](const Step& step) { return step.gradient; }));
  CHECK(fetched([](const Step& step) { return step.weight_gradient; }));
  CHECK(fetched([](const Step& step) { return step.copies[2]; }));
}

}  // namespace halfstep::test
