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

  explicit Updates(bool scaled, DType dtype = DType::float16, bool clipped = false) {
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
    if (clipped) clip(b, gradients);
    for (std::size_t i = 0; i < 2; ++i) {
      b.add_node("ResourceApplyGradientDescent", {handles[i], rate, gradients[i], ok});
    }
    graph.fetches() = {{"ok", ok}};
  }

  /// By the norm of both gradients.
  static void clip(Builder& b, std::vector<Value>& gradients) {
    std::vector<Value> squares;
    for (const Value& g : gradients) {
      squares.push_back(b.add("Sum", {b.add("Square", {g}), b.ints({0, 1})}));
    }
    const Value norm = b.add("Sqrt", {b.add("AddV2", {squares[0], squares[1]})});
    const Value factor = b.add("Reciprocal", {norm}, {}, "clip");
    for (Value& g : gradients) g = b.add("Mul", {g, factor});
  }

  Graph fused(const passes::KernelSupport& supports = always) const {
    Graph checked = passes::group_squares(passes::fuse_finite(graph, {}), {supports});
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

TEST_CASE("fuse_updates: clipped gradients are read in 16 bits by the norms and the updates") {
  for (const bool scaled : {true, false}) {
    const Graph fused = Updates(scaled, DType::float16, true).fused();
    CHECK(nodes(fused, "Cast").empty());
    CHECK(nodes(fused, "Square").empty());
    const Node& norms = *nodes(fused, "SquaredNorms").at(0);
    CHECK(norms.attrs.get<bool>("unscaled") == scaled);
    CHECK(norms.outputs.size() == 2);
    CHECK(fused.type(norms.inputs[0]).dtype == DType::float16);
    // Both updates multiply by one number.
    const auto updates = nodes(fused, "FusedUpdate");
    REQUIRE(updates.size() == 2);
    CHECK(updates[0]->inputs[3] == updates[1]->inputs[3]);
    const Node& factor = fused.node(updates[0]->inputs[3].node);
    CHECK(factor.op == (scaled ? "Mul" : "Reciprocal"));
    CHECK(nodes(fused, "Mul").size() == (scaled ? 1 : 0));
    for (const Node* update : updates) {
      CHECK(fused.type(update->inputs[2]).dtype == DType::float16);
    }
  }
}

TEST_CASE("fuse_updates: unscaled gradients stay where only some of their readers unscale") {
  Updates updates(true, DType::float16, true);
  updates.graph.fetches().emplace_back("gradient", updates.unscaled);
  const Graph fused = updates.fused();
  CHECK_FALSE(nodes(fused, "AllFinite").at(0)->attrs.get<bool>("unscaled"));
  CHECK_FALSE(nodes(fused, "SquaredNorms").at(0)->attrs.get<bool>("unscaled"));
  // The updates absorb the clipping alone, of the gradient that is fetched and of the other one.
  for (const Node* update : nodes(fused, "FusedUpdate")) {
    CHECK(fused.type(update->inputs[2]).dtype == DType::float32);
    CHECK(fused.node(update->inputs[3].node).op == "Reciprocal");
  }
}

namespace {

/// L2 penalties of three weights, each read and penalized before the next one is read.
struct Penalties {
  Graph graph;
  Builder b{graph, graph::op_table()};
  std::vector<Value> handles, squares;

  Value sum_of_squares(Value x) {
    squares.push_back(b.add("Sum", {b.add("Square", {x}), b.ints({0, 1})}));
    return squares.back();
  }
  void penalize(const std::vector<const char*>& names) {
    Value total = b.scalar(DType::float32, 0);
    for (const char* name : names) {
      handles.push_back(b.variable(variable(name, {64, 64})));
      const Value scaled =
          b.add("Mul", {sum_of_squares(b.read(handles.back())), b.scalar(DType::float32, 0.1)});
      total = b.add("AddV2", {total, scaled});
    }
    graph.fetches() = {{"penalty", total}};
  }
  Graph grouped(const passes::KernelSupport& supports = always) const {
    Graph result = passes::group_squares(graph, {supports});
    graph::verify(result, "group_squares");
    return result;
  }
};

}  // namespace

TEST_CASE("group_squares: penalties are summed by one op, and those who read them follow it") {
  Penalties penalties;
  penalties.penalize({"u", "v", "w"});
  const Graph grouped = penalties.grouped();
  REQUIRE(nodes(grouped, "SquaredNorms").size() == 1);
  CHECK(nodes(grouped, "SquaredNorms")[0]->outputs.size() == 3);
  CHECK(nodes(grouped, "Square").empty());
  CHECK(nodes(grouped, "Sum").empty());
  CHECK(nodes(grouped, "Mul").size() == 3);
  CHECK(nodes(penalties.grouped(never), "Square").size() == 3);
}

TEST_CASE("group_squares: a single sum, and sums that depend on each other, stay apart") {
  Penalties one;
  one.penalize({"w"});
  CHECK(nodes(one.grouped(), "Square").size() == 1);
  Penalties chain;
  chain.penalize({"u", "v"});
  const Value x = chain.b.placeholder("x", DType::float32, {64, 64});
  const Value after = chain.sum_of_squares(chain.b.add("Mul", {x, chain.squares[0]}));
  chain.graph.fetches().emplace_back("after", after);
  const Graph grouped = chain.grouped();
  REQUIRE(nodes(grouped, "SquaredNorms").size() == 1);
  CHECK(nodes(grouped, "SquaredNorms")[0]->outputs.size() == 2);
  CHECK(nodes(grouped, "Square").size() == 1);
}

TEST_CASE("group_squares: a weight that is written before the last one is read stays apart") {
  Penalties penalties;
  penalties.penalize({"u"});
  const Value x = penalties.b.placeholder("x", DType::float32, {64, 64});
  penalties.b.add_node("AssignVariableOp", {penalties.handles[0], x});
  penalties.graph.fetches().emplace_back("x", penalties.sum_of_squares(x));
  penalties.penalize({"v", "w"});
  CHECK(nodes(penalties.grouped(), "SquaredNorms").empty());
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
