// Softmax, cross-entropy and the ops around them as one op.

#include <doctest/doctest.h>

#include <ostream>
#include <string>

#include "graph/builder.h"
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

/// The loss of float16 logits of 6 rows, as a training step has it.
struct Loss {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value scale = b.placeholder("scale", DType::float32, {});
  Value logits = b.placeholder("logits", DType::float16, {6, 10});
  Value labels = b.placeholder("labels", DType::int32, {6});
  Value wide = b.cast(logits, DType::float32);
  Value softmax = b.add("Softmax", {wide});
  int loss = b.add_node("SparseSoftmaxCrossEntropyWithLogits", {wide, labels});
  Value mean = graph::ops::reduce(b, "Mean", Value{loss, 0});

  Loss() {
    const Value at = b.add("ArgMax", {softmax, b.scalar(DType::int32, 1)});
    const Value hits = b.add("Equal", {b.cast(at, DType::int32), labels});
    const Value correct = graph::ops::reduce(b, "Sum", b.cast(hits, DType::float32));
    const Value seed = b.add("Mul", {b.scalar(DType::float32, 1), scale});
    const Value one = graph::ops::reshape(b, seed, {1});
    const Value tile = b.add("Tile", {one, b.ints({6})});
    const Value row = b.add("RealDiv", {tile, b.scalar(DType::float32, 6)});
    const Value column = b.add("ExpandDims", {row, b.scalar(DType::int32, -1)});
    const Value gradient = b.cast(b.add("Mul", {column, Value{loss, 1}}), DType::float16);
    graph.fetches() = {
        {"outputs", softmax}, {"loss", mean}, {"correct", correct}, {"gradient", gradient}};
  }
  Graph fused(const passes::KernelSupport& supports = always) const {
    Graph result = passes::fuse_softmax_loss(graph, {supports});
    graph::verify(result, "fuse_softmax_loss");
    return result;
  }
};

}  // namespace

TEST_CASE("fuse_softmax_loss: the ops around a cross-entropy become one") {
  const Graph fused = Loss().fused();
  REQUIRE(nodes(fused, "SoftmaxLoss").size() == 1);
  const Node& node = *nodes(fused, "SoftmaxLoss")[0];
  CHECK(node.attrs.get<std::string>("forms") == "pmcg");
  CHECK(fused.node(node.inputs[0].node).name == "logits");
  CHECK(fused.node(node.inputs[2].node).name == "scale");
  for (const auto& [name, value] : fused.fetches()) {
    CAPTURE(name);
    CHECK(fused.node(value.node).op == "SoftmaxLoss");
  }
  CHECK(nodes(fused, "Cast").empty());
}

TEST_CASE("fuse_softmax_loss: the losses of the rows are kept where something reads them") {
  Loss loss;
  loss.graph.fetches().emplace_back("rows", Value{loss.loss, 0});
  CHECK(nodes(loss.fused(), "SoftmaxLoss").at(0)->attrs.get<std::string>("forms") == "plmcg");
}

TEST_CASE("fuse_softmax_loss: slopes that something else reads stay, as do refused ones") {
  Loss loss;
  loss.graph.fetches().emplace_back("slopes", Value{loss.loss, 1});
  CHECK(nodes(loss.fused(), "SoftmaxLoss").empty());
  const auto none = [](const graph::OpInstance&) { return false; };
  CHECK(nodes(Loss().fused(none), "SoftmaxLoss").empty());
}

}  // namespace halfstep::test
