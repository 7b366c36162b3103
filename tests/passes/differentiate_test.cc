#include "passes/differentiate.h"

#include <doctest/doctest.h>

#include <ostream>

#include "core/error.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Value;

/// The gradients of result `y` by the named nodes, as results "d<name>", and nothing else.
graph::Graph gradients(graph::Graph graph,
                       const std::vector<std::string>& names,
                       bool widen = false) {
  graph::Builder b(graph, graph::op_table());
  std::vector<Value> xs;
  for (const std::string& name : names) xs.push_back({graph.find(name), 0});
  std::vector<Value> found;
  {
    const graph::ScopeGuard scope(b, {"", graph::Phase::backward, "", {}}, "g");
    found = passes::differentiate(b, graph.fetch("y"), xs);
  }
  graph.fetches().clear();
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!found[i].valid()) continue;
    graph.fetches().emplace_back("d" + names[i],
                                 widen ? passes::promote_weight_gradient(b, found[i]) : found[i]);
  }
  graph::verify(graph, "differentiate");
  return passes::prune(graph);
}

std::vector<std::string> results(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [name, value] : graph.fetches()) names.push_back(name);
  return names;
}

const graph::Node& result(const graph::Graph& graph, std::string_view name) {
  return graph.node(graph.fetch(name).node);
}

}  // namespace

TEST_CASE("differentiate: only what leads to y gets a gradient") {
  const graph::Graph graph = gradients(read_graph(R"(
a = Placeholder() {dtype: float32, shape: [], _shape: [[]]}
b = Placeholder() {dtype: float32, shape: [], _shape: [[]]}
c = Placeholder() {dtype: float32, shape: [], _shape: [[]]}
p = Mul(a, b) {_shape: [[]]}
q = Mul(p, c) {_shape: [[]]}
y = Square(p) {_shape: [[]]}
result y y
)"),
                                       {"a", "b", "c", "y"});
  CHECK(results(graph) == std::vector<std::string>{"da", "db", "dy"});
  CHECK(result(graph, "dy").op == "Const");
  CHECK(graph.find("c") == -1);
  CHECK(graph.find("q") == -1);
}

TEST_CASE("differentiate: uses of one value add up, in the order of the backward pass") {
  const graph::Graph graph = gradients(read_graph(R"(
a = Placeholder() {dtype: float32, shape: [], _shape: [[]]}
s = Tanh(a) {_shape: [[]]}
t = Neg(a) {_shape: [[]]}
u = Square(a) {_shape: [[]]}
v = AddV2(s, t) {_shape: [[]]}
y = AddV2(v, u) {_shape: [[]]}
result y y
)"),
                                       {"a"});
  const graph::Node& sum = result(graph, "da");
  CHECK(sum.op == "AddN");
  REQUIRE(sum.inputs.size() == 3);
  // The last op of the forward pass comes first.
  CHECK(graph.node(sum.inputs[0].node).name.starts_with("g/u/"));
  CHECK(graph.node(sum.inputs[1].node).name.starts_with("g/t/"));
  CHECK(graph.node(sum.inputs[2].node).name.starts_with("g/s/"));
}

TEST_CASE("differentiate: a gradient has its value's dtype and the layer of the op it belongs to") {
  graph::Graph graph = read_graph(R"(
w = Placeholder() {dtype: float32, shape: [3, 2], _shape: [[3, 2]]}
x = Placeholder() {dtype: float16, shape: [4, 3], _shape: [[4, 3]]}
c = Cast(w) {SrcT: float32, DstT: float16, _shape: [[3, 2]]}
m = MatMul(x, c) {transpose_a: false, transpose_b: false, _shape: [[4, 2]], _layer: "dense"}
f = Cast(m) {SrcT: float16, DstT: float32, _shape: [[4, 2]]}
ax = Const() {dtype: int32, value: [0, 1], shape: [2], _shape: [[2]]}
y = Sum(f, ax) {keep_dims: false, _shape: [[]]}
result y y
)");
  const graph::Graph done = gradients(graph, {"w", "x"});
  CHECK(done.type(done.fetch("dw")) == graph::TensorType{DType::float32, {3, 2}});
  CHECK(done.type(done.fetch("dx")) == graph::TensorType{DType::float16, {4, 3}});
  const graph::Node& cast = result(done, "dw");
  REQUIRE(cast.op == "Cast");
  const graph::Node& matmul = done.node(cast.inputs[0].node);
  CHECK(matmul.op == "MatMul");
  CHECK(matmul.origin.layer == "dense");
  CHECK(matmul.origin.phase == graph::Phase::backward);
  CHECK(matmul.attrs.get<bool>("transpose_a"));
}

TEST_CASE("differentiate: an op without a gradient on the way is an error") {
  CHECK_THROWS_AS(gradients(read_graph(R"(
a = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
r = Floor(a) {_shape: [[3]]}
ax = Const() {dtype: int32, value: [0], shape: [1], _shape: [[1]]}
n = ArgMax(r, ax0) {T: float32, output_type: int64, _shape: [[]]}
ax0 = Const() {dtype: int32, value: [0], shape: [], _shape: [[]]}
f = Cast(n) {SrcT: int64, DstT: float32, _shape: [[]]}
result y f
)"),
                            {"a"}),
                  InternalError);
  CHECK_THROWS_AS(gradients(read_graph(R"(
a = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
result y a
)"),
                            {"a"}),
                  InternalError);
}

TEST_CASE(
    "promote_weight_gradient: matmuls and sums that end a weight's gradient are taken in "
    "float32") {
  const graph::Graph given = read_graph(R"(
w = Placeholder() {dtype: float32, shape: [3, 2], _shape: [[3, 2]]}
v = Placeholder() {dtype: float32, shape: [2], _shape: [[2]]}
x = Placeholder() {dtype: bfloat16, shape: [4, 3], _shape: [[4, 3]]}
cw = Cast(w) {SrcT: float32, DstT: bfloat16, _shape: [[3, 2]]}
cv = Cast(v) {SrcT: float32, DstT: bfloat16, _shape: [[2]]}
m = MatMul(x, cw) {transpose_a: false, transpose_b: false, _shape: [[4, 2]]}
a = BiasAdd(m, cv) {data_format: "NHWC", _shape: [[4, 2]]}
f = Cast(a) {SrcT: bfloat16, DstT: float32, _shape: [[4, 2]]}
q = Square(f) {_shape: [[4, 2]]}
ax = Const() {dtype: int32, value: [0, 1], shape: [2], _shape: [[2]]}
s = Sum(q, ax) {keep_dims: false, _shape: [[]]}
l = L2Loss(w) {_shape: [[]]}
y = AddV2(s, l) {_shape: [[]]}
result y y
)");
  const graph::Graph rounded = gradients(given, {"w", "v"});
  const graph::Graph wide = gradients(given, {"w", "v"}, true);
  CHECK(result(rounded, "dv").op == "Cast");
  CHECK(result(wide, "dv").op == "BiasAddGrad");
  CHECK(wide.type(wide.fetch("dv")).dtype == DType::float32);

  // The regularizer's term is float32; it is added to the matmul.
  const graph::Node& sum = result(wide, "dw");
  REQUIRE((sum.op == "AddV2" || sum.op == "AddN"));
  const graph::Node* matmul = nullptr;
  for (const Value& input : sum.inputs) {
    if (wide.node(input.node).op == "MatMul") matmul = &wide.node(input.node);
  }
  REQUIRE(matmul != nullptr);
  CHECK(matmul->attrs.get<DType>("T") == DType::float32);
  CHECK(matmul->attrs.get<bool>("transpose_a"));
  for (const Value& input : matmul->inputs) {
    const graph::Node& cast = wide.node(input.node);
    CHECK(cast.op == "Cast");
    CHECK(wide.type(cast.inputs[0]).dtype == DType::bfloat16);
  }
  // The matmul with the rounded result is gone.
  for (int id = 0; id < wide.size(); ++id) {
    const graph::Node& node = wide.node(id);
    if (node.origin.phase == graph::Phase::backward && node.op == "MatMul") {
      CHECK(node.attrs.get<DType>("T") == DType::float32);
    }
  }
}

TEST_CASE("promote_weight_gradient: a gradient that is float32 all along is left alone") {
  const graph::Graph given = read_graph(R"(
w = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
l = L2Loss(w) {_shape: [[]]}
result y l
)");
  CHECK(outline(gradients(given, {"w"}, true)) == outline(gradients(given, {"w"})));
}

}  // namespace halfstep::test
