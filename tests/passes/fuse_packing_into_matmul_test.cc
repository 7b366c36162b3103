// Packing of the left operand of a matmul while it is multiplied.

#include <doctest/doctest.h>

#include <ostream>
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
using graph::Value;

Graph lower(const Graph& graph, const passes::KernelSupport& supports = always) {
  const auto pays = [](const graph::OpInstance&, const graph::OpInstance&) { return true; };
  const Graph packed = passes::pack_matmuls(graph, {always, pays, 3});
  const passes::Target target{supports, pays, 3};
  Graph fused =
      passes::fuse_packing_into_matmul(passes::fuse_packed_epilogue(packed, target), target);
  graph::verify(fused, "fuse_packing_into_matmul");
  return fused;
}

/// A matmul x w and the gradient x^T dy of its weights, of which each packs x in its own layout.
struct Layer {
  Graph graph;

  explicit Layer(DType dtype) {
    Builder b(graph, graph::op_table());
    const Value x = b.placeholder("x", dtype, {64, 48}), dy = b.placeholder("dy", dtype, {64, 32});
    const Value w = b.cast(b.placeholder("w", DType::float32, {48, 32}), dtype);
    const Value y = b.add("BiasAdd", {b.add("MatMul", {x, w}), b.placeholder("bias", dtype, {32})});
    const Value dw = b.add("MatMul", {x, dy}, {{"transpose_a", true}});
    graph.fetches() = {{"y", y}, {"dw", dw}};
  }
};

}  // namespace

TEST_CASE("fuse_packing_into_matmul: both matmuls over x read it row-major, in either layout") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Graph fused = lower(Layer(dtype).graph);
    // w and dy as right operands.
    CHECK(count(fused, "PackOperand") == 2);
    const auto matmuls = nodes(fused, "PackedMatMul");
    REQUIRE(matmuls.size() == 2);
    for (const std::size_t i : {0U, 1U}) {
      const graph::Node& matmul = *matmuls[i];
      CHECK(fused.node(matmul.inputs[0].node).name == "x");
      CHECK(fused.type(matmul.inputs[1]).dtype == DType::uint8);
      CHECK(matmul.attrs.get<bool>("transpose_a") == (i == 1));
      CHECK(matmul.attrs.get<DType>("Ta") == dtype);
    }
    CHECK(matmuls[0]->attrs.get<bool>("bias"));
    CHECK(matmuls[0]->inputs.size() == 3);
  }
}

TEST_CASE("fuse_packing_into_matmul: packing stays where no kernel does it while it multiplies") {
  const auto packed_only = [](const graph::OpInstance& op) {
    return op.node.op != "PackedMatMul" || op.inputs[0].type.dtype == DType::uint8;
  };
  const Graph kept = lower(Layer(DType::bfloat16).graph, packed_only);
  CHECK(count(kept, "PackOperand") == 4);
}

TEST_CASE("fuse_packing_into_matmul: an operand that two matmuls read packed is packed once") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", DType::bfloat16, {64, 48});
  const Value v = b.placeholder("v", DType::bfloat16, {48, 32});
  const Value w = b.placeholder("w", DType::bfloat16, {48, 16});
  graph.fetches() = {{"xv", b.add("MatMul", {x, v})}, {"xw", b.add("MatMul", {x, w})}};
  const Graph kept = lower(graph);
  CHECK(count(kept, "PackOperand") == 3);
  for (const graph::Node* matmul : nodes(kept, "PackedMatMul")) {
    CHECK(kept.type(matmul->inputs[0]).dtype == DType::uint8);
  }
}

TEST_CASE("fuse_packing_into_matmul: a variable is packed where it is read") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value handle =
      b.add("VarHandleOp", {}, {{"dtype", DType::bfloat16}, {"shape", Shape{64, 48}}}, "variable");
  const Value x = b.add("ReadVariableOp", {handle}, {{"dtype", DType::bfloat16}});
  graph.fetches() = {{"y", b.add("MatMul", {x, b.placeholder("w", DType::bfloat16, {48, 32})})}};
  CHECK(count(lower(graph), "PackOperand") == 2);
}

}  // namespace halfstep::test
