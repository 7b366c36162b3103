// Values that matmuls multiply as float32: rounded to 16 bits, stored wide.

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <string_view>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Value;

Graph lower(const Graph& graph, const passes::KernelSupport& widens = always) {
  passes::Target target{.supports = always, .widens = widens};
  const Graph shared = passes::share_widened(graph, target);
  graph::verify(shared, "share_widened");
  Graph fused = passes::fuse_elementwise(shared, target);
  graph::verify(fused, "fuse_elementwise");
  return fused;
}

/// y = Relu(x w + b), where x is the result of an elementwise op; dw = x^T dy, and db, of dy masked
/// by y.
struct Layer {
  Graph graph;

  explicit Layer(DType dtype, std::int64_t batch = 64) {
    Builder b(graph, graph::op_table());
    const Value images = b.placeholder("images", DType::float32, {batch, 6, 8});
    const Value half = b.cast(b.add("Mul", {images, b.scalar(DType::float32, 0.5)}), dtype);
    const Value x = b.add("Reshape", {half, b.ints({batch, 48})});
    const Value w = b.cast(b.placeholder("w", DType::float32, {48, 32}), dtype);
    const Value matmul = b.add("MatMul", {x, w});
    const Value y = b.add("Relu", {b.add("BiasAdd", {matmul, b.placeholder("bias", dtype, {32})})});
    const Value z = b.add("MatMul", {y, b.placeholder("v", dtype, {32, 32})});
    const Value dy = b.add("ReluGrad", {b.add("Square", {z}), y});
    const Value dw = b.add("MatMul", {x, dy}, {{"transpose_a", true}});
    const Value db = b.add("BiasAddGrad", {dy});
    graph.fetches() = {{"dw", dw}, {"db", db}};
  }
};

/// The names of the values of a dtype that are stored, results of casts left out.
std::size_t stored(const Graph& lowered, DType dtype) {
  std::size_t count = 0;
  for (int id = 0; id < lowered.size(); ++id) {
    const Node& node = lowered.node(id);
    if (node.is(graph::ops::k_placeholder, graph::ops::k_const, graph::ops::k_cast)) continue;
    count += static_cast<std::size_t>(
        std::count_if(node.outputs.begin(), node.outputs.end(), [&](const graph::TensorType& type) {
          return type.dtype == dtype;
        }));
  }
  return count;
}

}  // namespace

TEST_CASE("share_widened: matmuls read rounded float32 and nothing between them is 16 bits wide") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Graph shared = lower(Layer(dtype).graph);
    const auto matmuls = nodes(shared, "MatMul");
    REQUIRE(matmuls.size() == 3);
    for (const Node* matmul : matmuls) CHECK(matmul->outputs[0].dtype == DType::float32);
    CHECK(matmuls[0]->inputs[0] == matmuls[2]->inputs[0]);
    CHECK(stored(shared, dtype) == 0);
    // Of v, and the two results that are fetched; all others are in the body of an op.
    CHECK(count(shared, "Cast") == 3);
    for (const auto& [name, value] : shared.fetches()) CHECK(shared.type(value).dtype == dtype);
    CHECK(nodes(shared, "BiasAddGrad")[0]->outputs[0].dtype == DType::float32);
  }
}

TEST_CASE("share_widened: a value that an op reads in 16 bits, or that is fetched, is stored so") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", DType::float16, {64, 48});
  const Value y = b.add("MatMul", {x, b.placeholder("w", DType::float16, {48, 32})});
  const Value relu = b.add("Relu", {y}), square = b.add("Square", {relu});
  const Value v = b.placeholder("v", DType::float16, {32, 32});
  graph.fetches() = {{"fetched", relu},
                     {"z", b.add("MatMul", {relu, v})},
                     {"softmax", b.add("Softmax", {square})},
                     {"u", b.add("MatMul", {square, v})}};
  const Graph shared = lower(graph);
  for (const auto& [name, value] : shared.fetches()) {
    CHECK(shared.type(value).dtype == DType::float16);
  }
  const Node& softmax = *nodes(shared, "Softmax")[0];
  CHECK(shared.type(softmax.inputs[0]).dtype == DType::float16);
  // Both values are stored in either width by the op that computes them.
  CHECK(stored(shared, DType::float32) == 3 + 2);
}

TEST_CASE("share_widened: operands of packed matmuls are packed from rounded float32") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", DType::float16, {64, 64});
  const Value y =
      b.add("Relu", {b.add("MatMul", {x, b.placeholder("w", DType::float16, {64, 64})})});
  const Value dw = b.add("MatMul", {y, y}, {{"transpose_a", true}});
  const Value z = b.add("MatMul", {y, b.placeholder("v", DType::float16, {64, 8})});
  graph.fetches() = {{"dw", dw}, {"z", z}};
  const auto pays = [](const graph::OpInstance& matmul, const graph::OpInstance&) {
    return matmul.node.attrs.get<bool>("transpose_a");
  };
  const passes::Target target{always, pays, 1};
  const Graph packed = passes::fuse_packing_into_matmul(
      passes::fuse_packed_epilogue(passes::pack_matmuls(graph, target), target), target);
  const Graph shared = lower(packed);
  const Node& matmul = *nodes(shared, "PackedMatMul")[0];
  CHECK(matmul.attrs.get<DType>("T") == DType::float16);
  CHECK(matmul.attrs.get<DType>("Ta") == DType::float32);
  CHECK(shared.type(nodes(shared, "PackOperand")[0]->inputs[0]).dtype == DType::float32);
  CHECK(nodes(shared, "MatMul").size() == 2);
}

TEST_CASE("share_widened: a packed matmul of rounded float32 runs before its result is widened") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.cast(
      b.add("Mul", {b.placeholder("x", DType::float32, {48, 64}), b.scalar(DType::float32, 0.5)}),
      DType::float16);
  const Value y =
      b.add("Relu", {b.add("MatMul", {x, b.placeholder("w", DType::float16, {64, 32})})});
  const Value dw = b.add("MatMul", {x, y}, {{"transpose_a", true}});
  const Value z = b.add("MatMul", {y, b.placeholder("v", DType::float16, {32, 8})});
  graph.fetches() = {{"dw", dw}, {"z", z}};
  const auto pays = [](const graph::OpInstance& matmul, const graph::OpInstance&) {
    return matmul.node.outputs[0].shape == Shape{48, 32};
  };
  const passes::Target target{always, pays, 1};
  const Graph packed = passes::fuse_packing_into_matmul(
      passes::fuse_packed_epilogue(passes::pack_matmuls(graph, target), target), target);
  const Graph shared = lower(packed);
  CHECK(nodes(shared, "PackedMatMul")[0]->attrs.get<DType>("Ta") == DType::float32);
  for (const Node* matmul : nodes(shared, "MatMul")) {
    CHECK(matmul->outputs[0].dtype == DType::float32);
  }
}

TEST_CASE("share_widened: large values, and ops whose kernels do not widen, stay in 16 bits") {
  const Graph large = lower(Layer(DType::float16, 600000).graph);
  for (const Node* matmul : nodes(large, "MatMul")) {
    CHECK(matmul->outputs[0].dtype == DType::float16);
  }
  const Graph graph = Layer(DType::float16).graph;
  CHECK(outline(passes::share_widened(graph, {.supports = always})) == outline(graph));
  CHECK(outline(passes::share_widened(graph, {.supports = always, .widens = never})) ==
        outline(graph));
}

}  // namespace halfstep::test
