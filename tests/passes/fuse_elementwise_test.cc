// Fusion of elementwise ops: which ops are fused, the position of the fused node, and unchanged
// ops.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "graph/builder.h"
#include "graph/elementwise_body.h"
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
  Graph fused = passes::fuse_elementwise(graph, {supports});
  graph::verify(fused, "fuse_elementwise");
  return fused;
}

std::string body(const Node& node) {
  return to_string(node.attrs.get<graph::ElementwiseBody>("body"));
}

/// A matrix to start from.
struct Fixture {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value x = b.placeholder("x", DType::float16, {4, 6});

  Value number(double value) { return b.scalar(DType::float16, value); }
};

}  // namespace

TEST_CASE("fuse_elementwise: a dropout is one node that gives what others read") {
  Fixture fixture;
  Builder& b = fixture.b;
  const Value ordinal = b.placeholder("ordinal", DType::int64, {});
  const Value uniform =
      b.add("RandomUniformFromOrdinal",
            {ordinal},
            {{"shape", Shape{4, 6}}, {"seed", std::int64_t{7}}, {"stream", std::int64_t{-2}}});
  const Value kept = b.add("GreaterEqual", {uniform, b.scalar(DType::float32, 0.25)});
  const Value scaled = b.add("Mul", {fixture.x, fixture.number(1.25)});
  const Value mask = b.cast(kept, DType::float16);
  const Value y = b.add("Mul", {scaled, mask}, {}, "dropped");
  fixture.graph.fetches() = {{"y", y}, {"mask", mask}};
  const Graph fused = fuse(fixture.graph);
  REQUIRE(count(fused, "FusedElementwise") == 1);
  const Node& node = *nodes(fused, "FusedElementwise")[0];
  CHECK(node.name == "dropped");
  CHECK(body(node) ==
        "RandomUniformFromOrdinal x0 seed=7 stream=-2 : float32 ; GreaterEqual t0 x1 : bool ; "
        "Mul x2 x3 : float16 ; Cast t1 : float16 ; Mul t2 t3 : float16 -> t3 t4");
  CHECK(fused.type(fused.fetch("y")) == graph::TensorType{DType::float16, {4, 6}});
  CHECK(fused.fetch("mask").port == 0);
  CHECK(fused.fetch("y").port == 1);
  for (std::string_view op : {"Mul", "Cast", "GreaterEqual", "RandomUniformFromOrdinal"}) {
    CAPTURE(op);
    CHECK(count(fused, op) == 0);
  }
}

TEST_CASE("fuse_elementwise: nothing moves behind somebody who reads it") {
  Fixture fixture;
  const Value a = fixture.b.add("Neg", {fixture.x}, {}, "a");
  const Value sum = fixture.b.add("Sum", {a, fixture.b.ints({0})}, {}, "sum");
  const Value c = fixture.b.add("Mul", {a, sum}, {}, "c");
  const Value d = fixture.b.add("Relu", {c}, {}, "d");
  fixture.graph.fetches() = {{"d", d}};
  const Graph fused = fuse(fixture.graph);
  CHECK(fused.node(fused.find("a")).op == "Neg");
  REQUIRE(count(fused, "FusedElementwise") == 1);
  CHECK(body(*nodes(fused, "FusedElementwise")[0]) ==
        "Mul x0 x1 : float16 ; Relu t0 : float16 -> t1");
}

TEST_CASE("fuse_elementwise: shapes, phases and nodes that others wait for stay apart") {
  const auto two = [](auto&& change) {
    Fixture fixture;
    const Value a = fixture.b.add("Neg", {fixture.x}, {}, "a");
    const Value c = fixture.b.add("Relu", {a}, {}, "c");
    fixture.graph.fetches() = {{"c", c}};
    change(fixture.graph);
    return count(fuse(fixture.graph), "FusedElementwise");
  };
  CHECK(two([](Graph&) {}) == 1);
  CHECK(two([](Graph& g) { g.node(g.find("c")).origin.phase = graph::Phase::backward; }) == 0);
  CHECK(two([](Graph& g) { g.node(g.find("a")).origin.phase = graph::Phase::input; }) == 1);
  CHECK(two([](Graph& g) { g.node(g.find("c")).control = {g.find("x")}; }) == 0);
  CHECK(two([](Graph& g) {
          Builder b(g, graph::op_table());
          g.node(b.add("Sum", {g.fetch("c"), b.ints({0})}).node).control = {g.find("a")};
        }) == 0);

  Fixture fixture;
  const Value row = fixture.b.add("Relu", {fixture.b.placeholder("row", DType::float16, {6})});
  fixture.graph.fetches() = {{"y", fixture.b.add("AddV2", {fixture.x, row})}};
  CHECK(count(fuse(fixture.graph), "FusedElementwise") == 0);
}

TEST_CASE("fuse_elementwise: ops that pick whole rows, or channels before the last axis, stay") {
  Fixture fixture;
  Builder& b = fixture.b;
  const Value rows = b.placeholder("rows", DType::boolean, {4});
  const Value picked = b.add("Select", {rows, fixture.x, fixture.x});
  const Value image = b.placeholder("image", DType::float16, {1, 6, 2, 2});
  const Value bias = b.placeholder("bias", DType::float16, {6});
  const Value biased = b.add("BiasAdd", {image, bias}, {{"data_format", std::string("NCHW")}});
  fixture.graph.fetches() = {{"a", b.add("Relu", {picked})}, {"b", b.add("Relu", {biased})}};
  CHECK(count(fuse(fixture.graph), "FusedElementwise") == 0);
}

TEST_CASE("fuse_elementwise: a variable is not read after it was written") {
  for (const bool written : {false, true}) {
    CAPTURE(written);
    Fixture fixture;
    Builder& b = fixture.b;
    graph::Variable variable;
    variable.name = "w";
    variable.type = {DType::float32, {4}};
    const Value w = b.variable(variable);
    const Value twice = b.add("Mul", {b.read(w), b.scalar(DType::float32, 2)});
    if (written) b.add_node("AssignAddVariableOp", {w, b.placeholder("d", DType::float32, {4})});
    fixture.graph.fetches() = {{"y", b.add("Relu", {twice})}};
    CHECK(count(fuse(fixture.graph), "FusedElementwise") == (written ? 0 : 1));
  }
}

TEST_CASE("fuse_elementwise: a chain beyond the longest body is several") {
  Fixture fixture;
  Value y = fixture.x;
  const auto steps = static_cast<int>(2 * graph::k_max_elementwise_steps);
  for (int i = 0; i < steps; ++i) y = fixture.b.add("Square", {y});
  fixture.graph.fetches() = {{"y", y}};
  const Graph fused = fuse(fixture.graph);
  CHECK(count(fused, "FusedElementwise") == 2);
  CHECK(count(fused, "Square") == 0);
}

TEST_CASE("fuse_elementwise: without a kernel all stays as it was") {
  Fixture fixture;
  fixture.graph.fetches() = {{"y", fixture.b.add("Relu", {fixture.b.add("Neg", {fixture.x})})}};
  CHECK(outline(fuse(fixture.graph, never)) == outline(fixture.graph));
}

TEST_CASE("fuse_elementwise: a body is read back from its text, and wrong ones are refused") {
  using graph::elementwise_body;
  const std::string text =
      "LeakyRelu x1 alpha=0.1 : bfloat16 ; Select x0 t0 t0 : bfloat16 -> t0 t1";
  CHECK(to_string(elementwise_body(text)) == text);
  CHECK(elementwise_body(text).steps[0].alpha == 0.1);
  for (std::string_view wrong : {"",
                                 "Relu x0 : float32",
                                 "Relu x0 : float32 ->",
                                 "Relu x0 : float32 -> x0",
                                 "Relu x0 : float32 -> t1",
                                 "Relu x8 : float32 -> t0",
                                 "Relu t0 : float32 -> t0",
                                 "Relu x0 : float31 -> t0",
                                 "Relu x0 -> t0",
                                 "Relu x0 beta=1 : float32 -> t0",
                                 "LeakyRelu x0 alpha=one : float32 -> t0",
                                 "Relu x-1 : float32 -> t0"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(elementwise_body(wrong), graph::ShapeError);
  }
}

TEST_CASE("fuse_elementwise: a body that does not fit its inputs is refused") {
  const auto refused = [](std::string_view text) {
    Fixture fixture;
    CHECK_THROWS_AS(fixture.b.add("FusedElementwise",
                                  {fixture.x, fixture.b.placeholder("wide", DType::float32, {6})},
                                  {{"body", graph::elementwise_body(text)},
                                   {"shape", Shape{4, 6}},
                                   {"Tresults", std::vector<DType>{DType::float16}}}),
                    UserError);
  };
  refused("Mul x0 x1 : float16 -> t0");
  refused("Cast x1 : float16 ; Relu x0 : float32 -> t1");
  refused("Cast x0 : float16 ; Relu x1 : float32 -> t1");
  refused("Cast x1 : float16 ; Greater x0 x0 : float16 -> t1");
  refused("Cast x1 : float16 ; Select x0 x0 x0 : float16 -> t1");
  refused("Relu x0 : float16 -> t0");
  refused("Relu x0 x1 : float16 -> t0");
  refused("MatMul x0 x1 : float16 -> t0");
}

}  // namespace halfstep::test
