// One launch for the updates of all variables, and copies and scalars that it needs.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Value;

/// Three variables with a use in 16 bits and an update each; each update has a constant of its own
/// as its rate.
struct Variables {
  Graph graph;
  Builder b{graph, graph::op_table()};
  std::vector<Value> handles;
  std::vector<Value> casts;
  Value ok = b.placeholder("ok", DType::boolean, {});

  Variables() {
    for (const char* name : {"u", "v", "w"}) {
      graph::Variable variable;
      variable.name = name;
      variable.type.shape = Shape{8, 4};
      handles.push_back(b.variable(std::move(variable)));
      const Value read = b.add("ReadVariableOp", {handles.back()}, {{"dtype", DType::float32}});
      casts.push_back(b.cast(read, DType::bfloat16));
      graph.fetches().emplace_back(name, casts.back());
    }
  }
  void update(std::size_t i, double rate = 0.5) {
    const std::string gradient = "gradient" + std::to_string(graph.size());
    b.add_node("ResourceApplyGradientDescent",
               {handles[i],
                b.scalar(DType::float32, rate),
                b.placeholder(gradient, DType::float32, {8, 4}),
                ok});
  }
  Graph grouped(const passes::KernelSupport& supports = always) const {
    Graph result = passes::group_updates(graph, {supports});
    graph::verify(result, "group_updates");
    return result;
  }
};

}  // namespace

TEST_CASE("group_updates: one update of all variables writes the copies that a step reads") {
  Variables variables;
  for (const std::size_t i : {0U, 1U, 2U}) variables.update(i);
  const Graph grouped = variables.grouped();
  CHECK(nodes(grouped, "ResourceApplyGradientDescent").empty());
  CHECK(nodes(grouped, "Cast").empty());
  CHECK(nodes(grouped, "CastVariable").size() == 3);
  REQUIRE(nodes(grouped, "GroupedUpdate").size() == 1);
  const Node& update = *nodes(grouped, "GroupedUpdate")[0];
  const auto ports = graph::ops::grouped_update_ports(update.attrs);
  CHECK(ports.tensors == 3);
  CHECK(ports.guarded);
  CHECK_FALSE(ports.unscaled);
  for (std::size_t t = 0; t < 3; ++t) {
    const Node& copy = grouped.node(update.inputs[static_cast<std::size_t>(ports.copies[t])].node);
    CHECK(copy.inputs[0] == update.inputs[ports.handle(t, 0)]);
  }
}

TEST_CASE("group_updates: other hyperparameters and uses between two updates part groups") {
  Variables rates;
  rates.update(0);
  rates.update(1, 0.25);
  rates.update(2);
  CHECK(nodes(rates.grouped(), "GroupedUpdate").size() == 2);

  // A node that reads the new value of the first variable.
  Variables reads;
  reads.update(0);
  const Value again =
      reads.b.add("ReadVariableOp", {reads.handles[0]}, {{"dtype", DType::float32}});
  reads.graph.fetches().emplace_back("new", reads.b.add("Neg", {again}));
  reads.update(1);
  const Graph parted = reads.grouped();
  REQUIRE(nodes(parted, "GroupedUpdate").size() == 2);
  CHECK(nodes(parted, "GroupedUpdate")[0]->attrs.get<std::vector<std::int64_t>>("copies") ==
        std::vector<std::int64_t>{1});
}

TEST_CASE("group_updates: a variable with another writer keeps its cast") {
  Variables variables;
  variables.update(0);
  variables.b.add_node(
      "AssignVariableOp",
      {variables.handles[0], variables.b.placeholder("value", DType::float32, {8, 4})},
      {{"dtype", DType::float32}});
  const Graph grouped = variables.grouped();
  // The other two are written by nothing: their copies stay valid.
  CHECK(nodes(grouped, "Cast").size() == 1);
  CHECK(nodes(grouped, "CastVariable").size() == 2);
}

TEST_CASE("group_updates: updates of Adam compute the powers of their betas") {
  for (const bool counted : {true, false}) {
    CAPTURE(counted);
    Variables variables;
    Builder& b = variables.b;
    const Value updates = b.placeholder("updates", DType::int64, {});
    const Value one = b.scalar(DType::float32, counted ? 1 : 2);
    const Value number = b.add("AddV2", {b.cast(updates, DType::float32), one});
    const Value beta1 = b.scalar(DType::float32, 0.9), beta2 = b.scalar(DType::float32, 0.99);
    const Value rate = b.scalar(DType::float32, 0.5), small = b.scalar(DType::float32, 1e-7);
    b.add_node("ResourceApplyAdam",
               {variables.handles[0],
                variables.handles[1],
                variables.handles[2],
                b.add("Pow", {beta1, number}),
                b.add("Pow", {beta2, number}),
                rate,
                beta1,
                beta2,
                small,
                b.placeholder("gradient", DType::float32, {8, 4}),
                variables.ok});
    const Graph grouped = variables.grouped();
    const Node& update = *nodes(grouped, "GroupedUpdate").at(0);
    CHECK(update.attrs.get<bool>("counted") == counted);
    CHECK(nodes(grouped, "Pow").size() == (counted ? 0 : 2));
    const auto ports = graph::ops::grouped_update_ports(update.attrs);
    if (counted) CHECK(update.inputs[ports.scalars].node == grouped.find("updates"));
  }
}

TEST_CASE("group_updates: an update adds the gradient of an L2 penalty that nothing else reads") {
  for (const bool read : {false, true}) {
    CAPTURE(read);
    Variables variables;
    Builder& b = variables.b;
    const Shape shape{8, 4};
    const Value gradient = b.placeholder("gradient", DType::bfloat16, shape);
    const Value own = b.placeholder("own", DType::float32, shape);
    const Value penalty = b.placeholder("penalty", DType::float32, {});
    const Value weight =
        b.add("ReadVariableOp", {variables.handles[0]}, {{"dtype", DType::float32}});
    const Value twice = b.add("Mul", {weight, b.scalar(DType::float32, 2)});
    const Value spread = b.add("Tile", {graph::ops::reshape(b, penalty, {1, 1}), b.ints({8, 4})});
    const Value product = b.add("Mul", {spread, twice});
    const Value sum = b.add("AddV2", {b.cast(gradient, DType::float32), product}, {}, "sum");
    const Value ok = b.add("AllFinite", {sum, own}, {}, "ok");
    const Value rate = b.scalar(DType::float32, 0.5);
    b.add_node("ResourceApplyGradientDescent", {variables.handles[0], rate, sum, ok});
    b.add_node("ResourceApplyGradientDescent", {variables.handles[1], rate, own, ok});
    if (read) variables.graph.fetches().emplace_back("sum", sum);
    const Graph grouped = variables.grouped();
    const Node& update = *nodes(grouped, "GroupedUpdate").at(0);
    const auto ports = graph::ops::grouped_update_ports(update.attrs);
    REQUIRE(ports.tensors == 2);
    const Node& check = *nodes(grouped, "AllFinite").at(0);
    const Value used = {grouped.find(read ? "sum" : "gradient"), 0};
    CHECK(update.inputs[ports.gradients] == used);
    CHECK(check.inputs[0] == used);
    CHECK(check.inputs[1] == update.inputs[ports.gradients + 1]);
    CHECK(ports.decayed == (read ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1, 0}));
    if (!read) CHECK(update.inputs[ports.decay()].node == grouped.find("penalty"));
    CHECK(nodes(grouped, "AddV2").size() == (read ? 1 : 0));
  }
}

TEST_CASE("group_updates: without a kernel nothing changes") {
  Variables variables;
  variables.update(0);
  const auto none = [](const graph::OpInstance& op) { return op.node.op != "GroupedUpdate"; };
  const Graph same = variables.grouped(none);
  CHECK(nodes(same, "Cast").size() == 3);
  CHECK(nodes(same, "ResourceApplyGradientDescent").size() == 1);
}

TEST_CASE("merge_scalars: equal numbers are computed once, and a fixed rate is a constant") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value step = b.placeholder("step", DType::float32, {});
  const auto power = [&](double beta) {
    return b.add("Pow", {b.scalar(DType::float32, beta), step});
  };
  const Value rate = b.add("LearningRate",
                           {b.placeholder("iterations", DType::int64, {})},
                           {{"kind", std::string("constant")}, {"base", 0.1}});
  graph.fetches() = {{"a", power(0.9)}, {"b", power(0.9)}, {"c", power(0.99)}, {"rate", rate}};
  const Graph merged = passes::merge_scalars(graph, {});
  graph::verify(merged, "merge_scalars");
  CHECK(nodes(merged, "Pow").size() == 2);
  CHECK(merged.fetch("a") == merged.fetch("b"));
  CHECK(merged.fetch("a") != merged.fetch("c"));
  CHECK(merged.node(merged.fetch("rate").node).op == "Const");
}

}  // namespace halfstep::test
