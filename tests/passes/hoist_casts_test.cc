// Casts after reshapes: which of them are moved before.

#include <doctest/doctest.h>

#include <ostream>

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

Graph hoist(const Graph& graph) {
  Graph hoisted = passes::hoist_casts(graph, {});
  graph::verify(hoisted, "hoist_casts");
  return hoisted;
}

/// x + x, flattened and cast.
struct Flat {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value x = b.placeholder("x", DType::float32, {2, 3, 4});
  Value sum = b.add("AddV2", {x, x}, {}, "sum");
  Value flat = b.add("Reshape", {sum, b.ints({2, 12})}, {}, "flat");
  Value cast = b.add("Cast", {flat}, {{"DstT", DType::bfloat16}}, "cast");

  Flat() { graph.fetches() = {{"y", cast}}; }
};

}  // namespace

TEST_CASE("hoist_casts: a cast moves before the reshape of what an elementwise op computes") {
  Flat f;
  const Graph hoisted = hoist(f.graph);
  const graph::Node& cast = hoisted.node(hoisted.find("cast"));
  CHECK(hoisted.node(cast.inputs[0].node).name == "sum");
  const Value y = hoisted.fetch("y");
  CHECK(hoisted.node(y.node).op == "Reshape");
  CHECK(hoisted.type(y) == graph::TensorType{DType::bfloat16, {2, 12}});
}

TEST_CASE("hoist_casts: what others read too, and what no elementwise op computes, stays") {
  {
    Flat f;
    f.graph.fetches().push_back({"flat", f.flat});
    CHECK(outline(hoist(f.graph)) == outline(f.graph));
  }
  {
    Flat f;
    f.graph.fetches().push_back({"sum", f.sum});
    CHECK(outline(hoist(f.graph)) == outline(f.graph));
  }
  {
    Flat f;
    const Value flat = f.b.add("Reshape", {f.x, f.b.ints({6, 4})}, {}, "bare");
    f.graph.fetches() = {{"y", f.b.cast(flat, DType::float16)}};
    const Graph hoisted = hoist(f.graph);
    CHECK(hoisted.type({hoisted.find("bare"), 0}).dtype == DType::float32);
  }
}

}  // namespace halfstep::test
