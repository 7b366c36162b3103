#include <doctest/doctest.h>

#include <ostream>

#include "graph/text.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {

TEST_CASE("prune: what no result and no update needs goes, the rest stays as it was") {
  const graph::Graph graph = read_graph(R"(
variable w {dtype: float32, shape: [3], role: weight}
x      = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
unused = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
dead1  = Relu(unused) {_shape: [[3]]}
dead2  = AddV2(dead1, x) {_shape: [[3]]}
before = Relu(x) {_shape: [[3]]}
double = AddV2(x, x, ^before) {_shape: [[3]]}
handle = VarHandleOp() {dtype: float32, shape: [3], shared_name: "w"}
assign = AssignVariableOp(handle, double)
kept   = Neg(x) {_shape: [[3]]}
side   = Neg(kept) {_shape: [[3]]}
result y double
)");
  CHECK(outline(passes::prune(graph)) == R"(x = Placeholder()
before = Relu(x)
double = AddV2(x, x, ^before)
handle = VarHandleOp()
assign = AssignVariableOp(handle, double)
result y double
)");
}

TEST_CASE("prune: nodes that are to be preserved stay with what they need") {
  const graph::Graph graph = read_graph(R"(
x    = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
a    = Relu(x) {_shape: [[3]]}
b    = Neg(a) {_shape: [[3]]}
c    = Neg(b) {_shape: [[3]]}
preserve b
)");
  CHECK(outline(passes::prune(graph)) == "x = Placeholder()\na = Relu(x)\nb = Neg(a)\n");
}

TEST_CASE("prune: a second time changes nothing, attributes and variables stay") {
  const graph::Graph graph = read_graph(R"(
variable w {dtype: float32, shape: [2, 3], role: weight}
x = Placeholder() {dtype: float32, shape: [4, 2], _shape: [[4, 2]]}
h = VarHandleOp() {dtype: float32, shape: [2, 3], shared_name: "w"}
r = ReadVariableOp(h) {_shape: [[2, 3]]}
y = MatMul(x, r) {transpose_a: false, transpose_b: false, _shape: [[4, 3]]}
z = Relu(y) {_shape: [[4, 3]]}
result y y
)");
  const graph::Graph once = passes::prune(graph);
  CHECK(graph::print_graph(passes::prune(once)) == graph::print_graph(once));
  CHECK(once.variables().size() == 1);
  CHECK(once.size() == graph.size() - 1);
  CHECK(graph::print_graph(once).find("MatMul(x, r)") != std::string::npos);
}

}  // namespace halfstep::test
