// Updates fused into the matmuls that compute their gradients.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "graph/ops/packed.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Value;

constexpr std::int64_t k_side = 64;

struct Options {
  bool guarded = false;
  bool reads_gradient = false;
  bool bias = false;
  bool view = false;          ///< of the weight, read just before the update
  bool writes_steps = false;  ///< before the rate reads them
};

/// The backward pass of a dense layer: the weight's gradient, then the matmul that still needs the
/// packed weight, another op, and the update with a rate that is computed last.
struct Layer {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value handle, gradient, dx, rate;

  explicit Layer(const Options& options = {}) {
    handle = b.variable(variable("w", {k_side, k_side}));
    const Value steps = b.variable(variable("steps", {}));
    const Value packed =
        b.add("PackedVariable", {handle}, {{"dtype", DType::bfloat16}, {"side", std::string("b")}});
    const Value weight = b.add("Identity", {b.read(handle)});
    gradient = matmul("dw", operand("x"), options.bias);
    dx = b.add("PackedMatMul", {operand("dy"), packed}, attributes(false), "dx");
    graph.fetches() = {{"dx", dx}, {"other", b.add("Relu", {dx}, {}, "other")}};
    if (options.view) graph.fetches().emplace_back("loss", b.add("Relu", {weight}, {}, "loss"));
    if (options.writes_steps) {
      b.add_node("AssignVariableOp", {steps, b.scalar(DType::float32, 1)}, {}, "write");
    }
    rate = b.add("Reciprocal", {b.read(steps)}, {}, "rate");
    std::vector<Value> inputs{handle, rate, gradient, b.scalar(DType::float32, 1), packed};
    if (options.guarded) inputs.push_back(b.placeholder("ok", DType::boolean, {}));
    b.add_node("FusedUpdate",
               inputs,
               {{"rule", std::string("ResourceApplyGradientDescent")},
                {"packed", std::int64_t{1}},
                {"guarded", options.guarded}},
               "update");
    if (options.reads_gradient) graph.fetches().emplace_back("gradient", gradient);
  }

  static graph::Variable variable(std::string name, Shape shape) {
    graph::Variable v;
    v.name = std::move(name);
    v.type.shape = std::move(shape);
    return v;
  }
  static graph::Attrs attributes(bool bias) {
    return {{"T", DType::bfloat16},
            {"Tresults", std::vector<DType>{DType::bfloat16}},
            {"m", k_side},
            {"n", k_side},
            {"k", k_side},
            {"bias", bias}};
  }
  Value operand(std::string_view name) {
    return b.placeholder(name, DType::uint8, {graph::ops::packed_bytes(k_side, k_side, {})});
  }
  Value matmul(std::string_view name, Value x, bool bias) {
    std::vector<Value> inputs{x, operand("y")};
    if (bias) inputs.push_back(b.placeholder("bias", DType::bfloat16, {k_side}));
    return b.add("PackedMatMul", inputs, attributes(bias), name);
  }

  Graph fused(const passes::KernelSupport& supports = always) const {
    Graph result = passes::fuse_update_into_matmul(graph, {supports});
    graph::verify(result, "fuse_update_into_matmul");
    return result;
  }
};

/// Whether node `first` precedes node `second`.
bool precedes(const Graph& graph, std::string_view first, std::string_view second) {
  REQUIRE(graph.find(first) >= 0);
  REQUIRE(graph.find(second) >= 0);
  return graph.find(first) < graph.find(second);
}

}  // namespace

TEST_CASE("fuse_update_into_matmul: the matmul takes the update's inputs and its name") {
  const Graph fused = Layer().fused();
  CHECK(nodes(fused, "FusedUpdate").empty());
  CHECK(fused.find("dw") < 0);
  REQUIRE(nodes(fused, "PackedMatMulUpdate").size() == 1);
  const Node& update = *nodes(fused, "PackedMatMulUpdate").at(0);
  CHECK(update.name == "update");
  CHECK(update.attrs.get<std::string>("rule") == "ResourceApplyGradientDescent");
  CHECK(update.attrs.get<std::int64_t>("packed") == 1);
  CHECK(update.attrs.get<std::int64_t>("k") == k_side);
  REQUIRE(update.inputs.size() == 6);
  CHECK(fused.node(update.inputs[1].node).name == "rate");
  CHECK(fused.node(update.inputs[2].node).name == "x");
  CHECK(fused.node(update.inputs[4].node).op == "PackedVariable");
  CHECK(fused.node(update.inputs[5].node).name == "y");
}

TEST_CASE(
    "fuse_update_into_matmul: it stands behind the last reader of the old weight, and no later") {
  const Graph fused = Layer().fused();
  CHECK(precedes(fused, "dx", "update"));
  CHECK(precedes(fused, "rate", "update"));
  CHECK(precedes(fused, "update", "other"));
  const Graph viewed = Layer({.view = true}).fused();
  CHECK(precedes(viewed, "loss", "update"));
}

TEST_CASE("fuse_update_into_matmul: a rate is not read before it is written") {
  const Graph fused = Layer({.writes_steps = true}).fused();
  CHECK(nodes(fused, "PackedMatMulUpdate").size() == 1);
  CHECK(precedes(fused, "write", "rate"));
  CHECK(precedes(fused, "rate", "update"));
}

TEST_CASE("fuse_update_into_matmul: what waits for others, or is read by them, stays apart") {
  const auto apart = [](const Graph& graph) { return nodes(graph, "FusedUpdate").size() == 1; };
  CHECK(apart(Layer({.guarded = true}).fused()));
  CHECK(apart(Layer({.reads_gradient = true}).fused()));
  CHECK(apart(Layer({.bias = true}).fused()));
  CHECK(apart(Layer().fused(never)));
}

}  // namespace halfstep::test
