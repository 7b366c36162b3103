// Ops outside of a graph, and the constants that name ops.

#include <doctest/doctest.h>

#include <ostream>

#include "core/files.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "support/paths.h"

namespace halfstep::graph {

TEST_CASE("describe: an op has the attributes and outputs that the builder would give it") {
  Graph graph;
  Builder b(graph, op_table());
  const Value x = b.placeholder("x", DType::bfloat16, {5, 7});
  const Value w = b.placeholder("w", DType::bfloat16, {3, 7});
  const Attrs attrs{{"transpose_b", true}};
  const Node& added = graph.node(b.add("MatMul", {x, w}, attrs).node);
  const int before = graph.size();
  const OpInstance thought =
      describe(op_table(), "MatMul", {graph.input(x), graph.input(w)}, attrs);
  CHECK(graph.size() == before);
  CHECK(thought.node.def == added.def);
  CHECK(thought.node.attrs == added.attrs);
  CHECK(thought.node.outputs == added.outputs);
  CHECK(thought.inputs[1].type == graph.type(w));
  CHECK(thought.inputs[1].producer == &graph.node(w.node));
  // A type is enough.
  const OpInstance typed =
      describe(op_table(), "MatMul", {{graph.type(x)}, {graph.type(w)}}, attrs);
  CHECK(typed.node.outputs == added.outputs);
}

TEST_CASE("describe: constants are seen behind inputs, and misfits are refused") {
  Graph graph;
  Builder b(graph, op_table());
  const Value x = b.placeholder("x", DType::float32, {4, 6});
  const OpInstance reshaped =
      describe(op_table(), "Reshape", {graph.input(x), graph.input(b.ints({3, 8}))});
  CHECK(reshaped.node.outputs[0].shape == Shape{3, 8});
  const OpInput unknown{{DType::int32, {2}}};
  CHECK_FALSE(unknown.constant().has_value());
  CHECK_THROWS_AS(describe(op_table(), "Reshape", {graph.input(x), unknown}), ShapeError);
  CHECK_THROWS_AS(describe(op_table(),
                           "ReadVariableOp",
                           {OpInput{{DType::resource, {}}}},
                           {{"dtype", DType::float32}}),
                  ShapeError);
  const OpInput wide{{DType::float32, {4, 5}}};
  CHECK_THROWS_AS(describe(op_table(), "MatMul", {graph.input(x), wide}), ShapeError);
}

TEST_CASE("op handles: every constant names an op of the table") {
  const std::string text = read_file((test::source_dir() / "lib/graph/op_handles.h").string());
  const std::string_view marker = "inline constexpr OpHandle k_";
  int found = 0;
  for (std::size_t at = 0; (at = text.find(marker, at)) != std::string::npos; ++found) {
    const std::size_t first = text.find('"', at) + 1;
    at = text.find('"', first);
    const std::string name = text.substr(first, at - first);
    CAPTURE(name);
    CHECK(op_table().find(name) != nullptr);
  }
  CHECK(found > 20);
}

TEST_CASE("op handles: a node is one of several ops by its op alone") {
  Graph graph;
  Builder b(graph, op_table());
  const Node& node =
      graph.node(b.add("Relu", {b.placeholder("x", DType::float32, {2})}, {}, "MatMul").node);
  CHECK(node.is(ops::k_relu));
  CHECK(node.is(ops::k_matmul, ops::k_relu));
  CHECK_FALSE(node.is(ops::k_matmul));
  CHECK_FALSE(node.is(ops::k_relu_grad));
}

}  // namespace halfstep::graph
