// A Relu before a max pooling: when the two are swapped and when not.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/differentiate.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;
using Ints = std::vector<std::int64_t>;

/// `relus` of Relu and MaxPool with a window of `size` and its stride, with the gradient of x when
/// asked.
struct Pooling {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value x, relu, pool;

  explicit Pooling(std::int64_t size, bool gradient, int relus = 1) {
    relu = x = b.placeholder("x", DType::float32, {2, 4, 4, 3});
    for (int i = 0; i < relus; ++i) relu = b.add("Relu", {relu}, {}, "relu");
    const Ints window{1, size, size, 1};
    pool = b.add("MaxPool",
                 {relu},
                 {{"ksize", window}, {"strides", window}, {"padding", std::string("VALID")}},
                 "pool");
    graph.fetches() = {{"y", pool}};
    if (!gradient) return;
    const Value xs[] = {x};
    const Value loss = graph::ops::reduce(b, "Sum", b.add("Mul", {pool, pool}));
    graph.fetches().push_back({"dx", passes::differentiate(b, loss, xs)[0]});
  }

  Graph moved() const {
    Graph result = passes::swap_relu_maxpool(graph, {});
    graph::verify(result, "swap_relu_maxpool");
    return result;
  }
};

const graph::Node& source(const Graph& graph, const graph::Node& node, std::size_t input) {
  return graph.node(node.inputs[input].node);
}

TEST_CASE(
    "swap_relu_maxpool: the Relu and its gradient work on what was pooled, under their names") {
  const Graph moved = Pooling(2, true).moved();
  REQUIRE(count(moved, "Relu") == 1);
  REQUIRE(count(moved, "ReluGrad") == 1);
  const graph::Node& relu = *nodes(moved, "Relu")[0];
  const graph::Node& relu_grad = *nodes(moved, "ReluGrad")[0];
  const graph::Node& pool_grad = *nodes(moved, "MaxPoolGrad")[0];
  CHECK(relu.name == "relu");
  CHECK(relu.outputs[0].shape == Shape{2, 2, 2, 3});
  CHECK(source(moved, relu, 0).name == "pool");
  CHECK(&source(moved, relu_grad, 1) == &relu);
  CHECK(source(moved, pool_grad, 0).name == "x");
  CHECK(source(moved, pool_grad, 1).name == "pool");
  CHECK(&source(moved, pool_grad, 2) == &relu_grad);
  CHECK(moved.node(moved.fetches()[0].second.node).op == "Relu");
  CHECK(moved.node(moved.fetches()[1].second.node).op == "MaxPoolGrad");
}

TEST_CASE("swap_relu_maxpool: also without a gradient") {
  const Graph moved = Pooling(2, false).moved();
  CHECK(source(moved, *nodes(moved, "Relu")[0], 0).op == "MaxPool");
}

TEST_CASE("swap_relu_maxpool: of several Relus each moves") {
  const Graph moved = Pooling(2, true, 3).moved();
  CHECK(source(moved, *nodes(moved, "MaxPool")[0], 0).name == "x");
  CHECK(count(moved, "Relu") == 3);
  CHECK(count(moved, "ReluGrad") == 3);
}

TEST_CASE("swap_relu_maxpool: not where the Relu has other readers, or nothing becomes smaller") {
  Pooling fetched(2, false);
  fetched.graph.fetches().push_back({"relu", fetched.relu});
  Pooling read(2, true);
  read.graph.fetches().push_back({"other", read.b.add("Neg", {read.relu})});
  for (const Pooling* p : {&fetched, &read}) {
    const Graph kept = p->moved();
    CHECK(source(kept, *nodes(kept, "MaxPool")[0], 0).op == "Relu");
  }
  const Graph same = Pooling(1, true).moved();
  CHECK(source(same, *nodes(same, "MaxPool")[0], 0).op == "Relu");
}

}  // namespace
}  // namespace halfstep::test
