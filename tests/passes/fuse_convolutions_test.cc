// Convolutions and the biases after them: when they are fused and when not.

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

struct Biased {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value conv, y;

  explicit Biased(DType dtype = DType::bfloat16) {
    const Value x = b.placeholder("x", dtype, {2, 5, 5, 3});
    const Value w = b.placeholder("w", dtype, {3, 3, 3, 4});
    conv = b.add(
        "Conv2D",
        {x, w},
        {{"strides", std::vector<std::int64_t>{1, 2, 2, 1}}, {"padding", std::string("SAME")}},
        "conv");
    y = b.add("BiasAdd", {conv, b.placeholder("bias", dtype, {4})}, {}, "bias_add");
    graph.fetches() = {{"y", b.add("Relu", {y})}};
  }

  Graph fused(const passes::KernelSupport& supports = always) const {
    Graph result = passes::fuse_convolutions(graph, {supports});
    graph::verify(result, "fuse_convolutions");
    return result;
  }
};

TEST_CASE("fuse_convolutions: bias and ReLU move in, with the convolution's attributes") {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const Graph fused = Biased(dtype).fused();
    CHECK(count(fused, "Conv2D") == 0);
    CHECK(count(fused, "BiasAdd") == 0);
    CHECK(count(fused, "Relu") == 0);
    REQUIRE(count(fused, "Conv2DBiasRelu") == 1);
    const graph::Node& node = *nodes(fused, "Conv2DBiasRelu")[0];
    CHECK(node.outputs[0].shape == Shape{2, 3, 3, 4});
    CHECK(node.attrs.get<std::string>("padding") == "SAME");
    CHECK(fused.node(node.inputs[2].node).name == "bias");
  }
}

TEST_CASE(
    "fuse_convolutions: the ReLU stays where no kernel takes it, or something reads the sum") {
  const auto no_relu = [](const graph::OpInstance& op) { return op.node.op != "Conv2DBiasRelu"; };
  Biased read;
  read.graph.fetches().push_back({"sum", read.y});
  for (const Graph& fused : {Biased().fused(no_relu), read.fused()}) {
    REQUIRE(count(fused, "Conv2DBias") == 1);
    CHECK(nodes(fused, "Conv2DBias")[0]->name == "bias_add");
    CHECK(fused.node(nodes(fused, "Relu")[0]->inputs[0].node).op == "Conv2DBias");
  }
}

TEST_CASE("fuse_convolutions: not where no kernel takes it, or the bare result is read") {
  CHECK(count(Biased().fused(never), "Conv2DBias") == 0);
  CHECK(count(Biased(DType::float64).fused(), "Conv2DBias") == 0);
  Biased read;
  read.graph.fetches().push_back({"conv", read.conv});
  CHECK(count(read.fused(), "Conv2DBias") == 0);
}

}  // namespace
}  // namespace halfstep::test
