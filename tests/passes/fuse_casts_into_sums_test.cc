// Gradients of biases from 16-bit values: when the sum reads them as they are.

#include <doctest/doctest.h>

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

struct Summed {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value dy, wide;

  explicit Summed(DType dtype = DType::float16, DType sums = DType::float32) {
    dy = b.placeholder("dy", dtype, {2, 3, 5, 4});
    wide = b.cast(dy, sums);
    graph.fetches() = {
        {"db", b.add("BiasAddGrad", {wide}, {{"data_format", std::string("NCHW")}}, "sums")}};
  }

  Graph fused(const passes::KernelSupport& supports = always) const {
    Graph result = passes::fuse_casts_into_sums(graph, {supports});
    graph::verify(result, "fuse_casts_into_sums");
    return result;
  }
};

TEST_CASE("fuse_casts_into_sums: the sum reads 16 bits and has its attributes, dtype and name") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Graph fused = Summed(dtype).fused();
    CHECK(count(fused, "Cast") == 0);
    CHECK(count(fused, "BiasAddGrad") == 0);
    REQUIRE(count(fused, "CastBiasAddGrad") == 1);
    const graph::Node& node = *nodes(fused, "CastBiasAddGrad")[0];
    CHECK(node.name == "sums");
    CHECK(node.outputs[0] == graph::TensorType{DType::float32, Shape{3}});
    CHECK(node.attrs.get<std::string>("data_format") == "NCHW");
    CHECK(fused.node(node.inputs[0].node).name == "dy");
  }
}

TEST_CASE("fuse_casts_into_sums: a copy that others read, other casts and sums stay") {
  CHECK(count(Summed().fused(never), "Cast") == 1);
  CHECK(count(Summed(DType::float32, DType::float16).fused(), "Cast") == 1);
  CHECK(count(Summed(DType::float16, DType::float64).fused(), "Cast") == 1);
  Summed read;
  read.graph.fetches().push_back({"wide", read.wide});
  CHECK(count(read.fused(), "CastBiasAddGrad") == 0);
}

}  // namespace
}  // namespace halfstep::test
