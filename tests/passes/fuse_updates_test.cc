// Updates that read gradients as they come, and packed weights that stay.

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

graph::Variable variable(std::string name, Shape shape) {
  graph::Variable v;
  v.name = std::move(name);
  v.type.shape = std::move(shape);
  return v;
}

/// Two weights whose 16-bit gradients are widened, unscaled, checked and applied.
struct Updates {
  Graph graph;
  Value unscaled;

  explicit Updates(bool scaled, DType dtype = DType::float16) {
    Builder b(graph, graph::op_table());
    const Value factor = b.add("Reciprocal", {b.placeholder("scale", DType::float32, {})});
    const Value rate = b.scalar(DType::float32, 0.5);
    std::vector<Value> handles, gradients;
    Value ok;
    for (const char* name : {"w", "v"}) {
      handles.push_back(b.variable(variable(name, {64, 64})));
      const Value g =
          b.cast(b.placeholder(std::string(name) + "_grad", dtype, {64, 64}), DType::float32);
      gradients.push_back(scaled ? b.add("Mul", {g, factor}) : g);
      const Value all = b.add("All", {b.add("IsFinite", {gradients.back()}), b.ints({0, 1})});
      ok = ok.valid() ? b.add("LogicalAnd", {ok, all}) : all;
    }
    unscaled = gradients[0];
    for (std::size_t i = 0; i < 2; ++i) {
      b.add_node("ResourceApplyGradientDescent", {handles[i], rate, gradients[i], ok});
    }
    graph.fetches() = {{"ok", ok}};
  }

  Graph fused(const passes::KernelSupport& supports = always) const {
    Graph checked = passes::fuse_finite(graph, {});
    Graph result = passes::fuse_updates(checked, {supports});
    graph::verify(result, "fuse_updates");
    return result;
  }
};

}  // namespace

TEST_CASE("fuse_updates: casts and the unscaling move into the updates and the check") {
  const Graph fused = Updates(true).fused();
  CHECK(nodes(fused, "Cast").empty());
  CHECK(nodes(fused, "Mul").empty());
  CHECK(nodes(fused, "ResourceApplyGradientDescent").empty());
  REQUIRE(nodes(fused, "FusedUpdate").size() == 2);
  for (const Node* update : nodes(fused, "FusedUpdate")) {
    CHECK(update->attrs.get<std::string>("rule") == "ResourceApplyGradientDescent");
    CHECK(update->attrs.get<bool>("guarded"));
    CHECK(fused.type(update->inputs[2]).dtype == DType::float16);
    CHECK(fused.node(update->inputs[3].node).op == "Reciprocal");
  }
  const Node& check = *nodes(fused, "AllFinite").at(0);
  CHECK(check.attrs.get<bool>("unscaled"));
  REQUIRE(check.inputs.size() == 3);
  CHECK(fused.type(check.inputs[0]).dtype == DType::float16);
  CHECK(fused.node(check.inputs[2].node).op == "Reciprocal");
}

TEST_CASE("fuse_updates: without a scale the factor is one and the check reads 16 bits") {
  const Graph fused = Updates(false, DType::bfloat16).fused();
  CHECK(nodes(fused, "Cast").empty());
  REQUIRE(nodes(fused, "FusedUpdate").size() == 2);
  const Node& check = *nodes(fused, "AllFinite").at(0);
  CHECK_FALSE(check.attrs.get<bool>("unscaled"));
  CHECK(fused.type(check.inputs[0]).dtype == DType::bfloat16);
}

TEST_CASE("fuse_updates: what somebody else reads stays, and the check reads it as well") {
  Updates updates(true);
  updates.graph.fetches().emplace_back("gradient", updates.unscaled);
  const Graph fused = updates.fused();
  CHECK(nodes(fused, "Mul").size() == 2);
  CHECK(nodes(fused, "FusedUpdate").empty());
  CHECK_FALSE(nodes(fused, "AllFinite").at(0)->attrs.get<bool>("unscaled"));
}

TEST_CASE("fuse_updates: where no kernel runs them, and on float32, all stays as it is") {
  CHECK(nodes(Updates(true).fused(never), "ResourceApplyGradientDescent").size() == 2);
  const Graph wide = Updates(false, DType::float32).fused();
  CHECK(nodes(wide, "ResourceApplyGradientDescent").size() == 2);
}

namespace {

/// A variable that is packed twice and then updated; `other_writer` assigns to it as well.
Graph kept(const passes::KernelSupport& supports, bool other_writer) {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value handle = b.variable(variable("w", {64, 64}));
  const auto pack = [&](bool transpose) {
    return b.add(
        "PackOperand",
        {b.read(handle)},
        {{"dtype", DType::bfloat16}, {"side", std::string("b")}, {"transpose", transpose}});
  };
  graph.fetches() = {{"once", pack(false)}, {"twice", pack(true)}};
  b.add_node("FusedUpdate",
             {handle,
              b.scalar(DType::float32, 0.5),
              b.placeholder("gradient", DType::bfloat16, {64, 64}),
              b.scalar(DType::float32, 1)},
             {{"rule", std::string("ResourceApplyGradientDescent")}});
  if (other_writer) {
    b.add_node("AssignVariableOp", {handle, b.placeholder("x", DType::float32, {64, 64})});
  }
  Graph result = passes::persist_packed_weights(graph, {supports});
  graph::verify(result, "persist_packed_weights");
  return result;
}

}  // namespace

TEST_CASE("persist_packed_weights: the update writes each packed form of its variable") {
  const Graph packed = kept(always, false);
  CHECK(nodes(packed, "PackOperand").empty());
  CHECK(nodes(packed, "PackedVariable").size() == 2);
  const Node& update = *nodes(packed, "FusedUpdate").at(0);
  CHECK(update.attrs.get<std::int64_t>("packed") == 2);
  CHECK(update.inputs.size() == 6);
}

TEST_CASE(
    "persist_packed_weights: a variable with another writer, or without a kernel, is packed each "
    "time") {
  CHECK(nodes(kept(always, true), "PackOperand").size() == 2);
  CHECK(nodes(kept(never, false), "PackOperand").size() == 2);
}

}  // namespace halfstep::test
