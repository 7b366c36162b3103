// The order in which exchanges between ranks begin.

#include <doctest/doctest.h>

#include <ostream>
#include <string>

#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "graph/text.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;

/// Two sums of a and of b, begun after both were computed; the sum of a is read early.
struct Sums {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value of_a, of_b;

  Sums(std::int64_t order_of_a, std::int64_t order_of_b) {
    const Value x = b.placeholder("x", DType::float32, {8});
    const Value a = b.add("Neg", {x}, {}, "a");
    const Value between = b.add("Exp", {a}, {}, "between");
    const Value late = b.add("Neg", {between}, {}, "b");
    of_a = sum(a, order_of_a, "sum_a");
    graph.fetches().emplace_back("early", b.add("Neg", {wait(of_a)}, {}, "reader"));
    of_b = sum(late, order_of_b, "sum_b");
    graph.fetches().emplace_back("late", wait(of_b));
  }
  Value sum(Value x, std::int64_t order, std::string_view name) {
    return b.add("AllReduceStart",
                 {x},
                 {{"T", DType::float32}, {"ranks", std::int64_t{2}}, {"order", order}},
                 name);
  }
  Value wait(Value sum) {
    return graph::ops::wait_for_all_reduce(b, sum, {{DType::float32, {8}}})[0];
  }
  Graph run() const {
    Graph after = passes::start_sums_early(graph, {always});
    graph::verify(after, "start_sums_early");
    CHECK(after.size() == graph.size());
    return after;
  }
};

}  // namespace

TEST_CASE("start_sums_early: a sum begins behind the op that computes its value") {
  for (const std::int64_t order : {0, 1}) {
    const Graph after = Sums(order, 2 * order).run();
    CHECK(after.find("sum_a") == after.find("a") + 1);
    CHECK(after.find("sum_b") == after.find("b") + 1);
  }
}

TEST_CASE("start_sums_early: sums begin in their order, and values are computed for it") {
  const Graph after = Sums(2, 1).run();
  CHECK(after.find("b") < after.find("sum_b"));
  CHECK(after.find("sum_b") < after.find("sum_a"));
  CHECK(after.find("sum_a") < after.find("reader"));
}

TEST_CASE("start_sums_early: weights are gathered first, and written before they are read") {
  Graph graph;
  Builder b(graph, graph::op_table());
  const auto variable = [&](std::string name, const Shape& shape) {
    return b.variable(
        {std::move(name), {DType::float32, shape}, graph::Role::weight, true, {}, ""});
  };
  const Value copy = variable("copy", {8}), master = variable("master", {4});
  const Value x = b.placeholder("x", DType::float32, {8});
  const Value first = b.add("Exp", {x}, {}, "first");
  const Value y = b.add("Mul", {first, b.read(copy)}, {}, "reader");
  graph.fetches().emplace_back("y", y);
  b.add_node("AssignVariableOp", {master, b.placeholder("g", DType::float32, {4})}, {}, "update");
  const Value start =
      b.add("AllGatherStart",
            {b.read(master)},
            {{"T", DType::float32}, {"rank", std::int64_t{0}}, {"ranks", std::int64_t{2}}},
            "start");
  b.add_node("AllGatherWait",
             {start, copy},
             {{"counts", std::vector<std::int64_t>{8}}, {"ranks", std::int64_t{2}}},
             "wait");
  const Graph after = passes::start_sums_early(graph, {always});
  graph::verify(after, "start_sums_early");
  CHECK(after.size() == graph.size());
  CHECK(after.find("start") < after.find("first"));
  CHECK(after.find("wait") > after.find("first"));
  CHECK(after.find("wait") < after.find("copy/read"));
  CHECK(after.find("update") > after.find("reader"));
  // A second run changes nothing.
  CHECK(graph::print_graph(passes::start_sums_early(after, {always})) == graph::print_graph(after));
}

}  // namespace halfstep::test
