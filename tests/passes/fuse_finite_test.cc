#include <doctest/doctest.h>

#include <ostream>

#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

graph::Graph fuse(std::string_view text) {
  graph::Graph fused = passes::fuse_finite(read_graph(text), {});
  graph::verify(fused, "fuse_finite");
  return fused;
}

}  // namespace

TEST_CASE("fuse_finite: a conjunction of checks becomes one op that keeps its name") {
  const graph::Graph fused = fuse(R"(
a  = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
b  = Placeholder() {dtype: float16, shape: [3], _shape: [[3]]}
c  = Placeholder() {dtype: float32, shape: [], _shape: [[]]}
ax = Const() {dtype: int32, value: [0], shape: [1], _shape: [[1]]}
no = Const() {dtype: int32, value: [], shape: [0], _shape: [[0]]}
fa = IsFinite(a) {_shape: [[3]]}
fb = IsFinite(b) {_shape: [[3]]}
fc = IsFinite(c) {_shape: [[]]}
aa = All(fa, ax) {keep_dims: false, _shape: [[]]}
ab = All(fb, ax) {keep_dims: false, _shape: [[]]}
ac = All(fc, no) {keep_dims: false, _shape: [[]]}
l1 = LogicalAnd(aa, ab) {_shape: [[]]}
l2 = LogicalAnd(l1, ac) {_shape: [[]]}
result ok l2
)");
  CHECK(outline(fused) == R"(a = Placeholder()
b = Placeholder()
c = Placeholder()
l2 = AllFinite(a, b, c)
result ok l2
)");
}

TEST_CASE("fuse_finite: what is no check of everything stays") {
  constexpr std::string_view k_text = R"(
a  = Placeholder() {dtype: float32, shape: [3, 2], _shape: [[3, 2]]}
f  = Placeholder() {dtype: bool, shape: [], _shape: [[]]}
ax = Const() {dtype: int32, value: [0], shape: [1], _shape: [[1]]}
fa = IsFinite(a) {_shape: [[3, 2]]}
aa = All(fa, ax) {keep_dims: false, _shape: [[2]]}
na = IsNan(a) {_shape: [[3, 2]]}
ba = Const() {dtype: int32, value: [0, 1], shape: [2], _shape: [[2]]}
ab = All(na, ba) {keep_dims: false, _shape: [[]]}
l  = LogicalAnd(ab, f) {_shape: [[]]}
result columns aa
result all_nan ab
result l l
)";
  CHECK(outline(fuse(k_text)) == outline(read_graph(k_text)));
}

TEST_CASE("fuse_finite: a check beside another condition is fused by itself") {
  const graph::Graph fused = fuse(R"(
a  = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
f  = Placeholder() {dtype: bool, shape: [], _shape: [[]]}
ax = Const() {dtype: int32, value: [0], shape: [1], _shape: [[1]]}
fa = IsFinite(a) {_shape: [[3]]}
aa = All(fa, ax) {keep_dims: false, _shape: [[]]}
l  = LogicalAnd(aa, f) {_shape: [[]]}
result ok l
)");
  CHECK(outline(fused) == R"(a = Placeholder()
f = Placeholder()
aa = AllFinite(a)
l = LogicalAnd(aa, f)
result ok l
)");
}

TEST_CASE("fuse_finite: a check that others read too is not lost") {
  const graph::Graph fused = fuse(R"(
a  = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
b  = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
ax = Const() {dtype: int32, value: [0], shape: [1], _shape: [[1]]}
fa = IsFinite(a) {_shape: [[3]]}
fb = IsFinite(b) {_shape: [[3]]}
aa = All(fa, ax) {keep_dims: false, _shape: [[]]}
ab = All(fb, ax) {keep_dims: false, _shape: [[]]}
l  = LogicalAnd(aa, ab) {_shape: [[]]}
n  = LogicalNot(ab) {_shape: [[]]}
result ok l
result bad n
)");
  CHECK(outline(fused) == R"(a = Placeholder()
b = Placeholder()
ab = AllFinite(b)
l = AllFinite(a, b)
n = LogicalNot(ab)
result ok l
result bad n
)");
}

}  // namespace halfstep::test
