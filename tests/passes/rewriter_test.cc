// Patterns and the nodes that replace their matches.

#include "passes/rewriter.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Graph;
using graph::Value;
using passes::any;
using passes::new_value;
using passes::op;
using passes::Replacement;
using passes::Rewriter;

/// Relu(a + b) and a sum that is read twice.
constexpr std::string_view k_sums = R"(
a = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
b = Placeholder() {dtype: float32, shape: [3], _shape: [[3]]}
n = Neg(b) {_shape: [[3]]}
s = AddV2(a, n) {_shape: [[3]]}
r = Relu(s) {_shape: [[3]], _layer: "dense"}
t = AddV2(r, b) {_shape: [[3]]}
u = Relu(t) {_shape: [[3]]}
result u u
result t t
)";

/// Replaces Relu(AddV2(x, Neg(y))) by Relu(Sub(x, y)).
std::string subtract(std::string_view text, const passes::KernelSupport& supports = {}) {
  Rewriter rewriter(read_graph(text), supports);
  Value x, y, sum, relu;
  const passes::Pattern added =
      op(graph::ops::k_add_v2, {any(x), op(graph::OpHandle{"Neg"}, {any(y)})}).as(sum);
  rewriter.apply(op(graph::ops::k_relu, {added.commutes().used_once()}).as(relu),
                 [&]() -> Replacement {
                   return {{.op = "Sub", .inputs = {x, y}, .origin = sum.node, .named = sum.node},
                           {.op = "Relu", .inputs = {new_value(0)}, .results = {{relu}}}};
                 });
  const Graph rewritten = passes::prune(rewriter.finish());
  graph::verify(rewritten, "the rewriter");
  return outline(rewritten);
}

std::string replaced(std::string text, std::string_view old, std::string_view now) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), now);
}

}  // namespace

TEST_CASE("rewriter: new nodes run at the position of the root and take names of the match") {
  constexpr std::string_view k_wanted = R"(a = Placeholder()
b = Placeholder()
s = Sub(a, b)
r = Relu(s)
t = AddV2(r, b)
u = Relu(t)
result u u
result t t
)";
  CHECK(subtract(k_sums) == k_wanted);
  CHECK(subtract(replaced(std::string(k_sums), "AddV2(a, n)", "AddV2(n, a)")) == k_wanted);
}

TEST_CASE("rewriter: values with other uses, and nodes with control edges, do not match") {
  const std::string text(k_sums);
  for (const std::string& kept : {replaced(text, "result t t", "result t s"),
                                  replaced(text, "AddV2(r, b)", "AddV2(r, s)"),
                                  replaced(text, "Relu(s)", "Relu(s, ^a)"),
                                  replaced(text, "AddV2(r, b)", "AddV2(r, b, ^s)")}) {
    CAPTURE(kept);
    CHECK(subtract(kept) == outline(read_graph(kept)));
  }
}

TEST_CASE("rewriter: a match stays as it is when one of its new nodes has no kernel") {
  for (const std::string_view missing : {"Sub", "Relu"}) {
    CAPTURE(missing);
    std::size_t asked = 0;
    const std::string kept = subtract(k_sums, [&](const graph::OpInstance& instance) {
      ++asked;
      if (instance.node.op == "Relu") CHECK(instance.inputs[0].producer->op == "Sub");
      return instance.node.op != missing;
    });
    CHECK(kept == outline(read_graph(k_sums)));
    CHECK(asked == (missing == "Sub" ? 1 : 2));
  }
}

TEST_CASE("rewriter: a replaced value follows its replacement into later nodes") {
  Rewriter rewriter(read_graph(k_sums));
  const Graph& graph = rewriter.graph();
  const Value b{graph.find("b"), 0}, r{graph.find("r"), 0}, t{graph.find("t"), 0};
  const Value now{rewriter.add({{.op = "Neg", .inputs = {b}, .name = "a"}}, r.node), 0};
  CHECK(rewriter.node(now).name == "a_1");
  CHECK(rewriter.node(now).origin.layer == "dense");
  rewriter.replace(r, now);
  CHECK(rewriter.users(r).empty());
  CHECK(rewriter.users(now) == std::vector<int>{t.node});
  const Value late{rewriter.add({{.op = "Neg", .inputs = {r}}}, t.node), 0};
  CHECK(rewriter.node(late).inputs[0] == now);
  CHECK(rewriter.users(now) == std::vector<int>{t.node, late.node});
}

TEST_CASE("rewriter: nodes at one position keep the order in which they came there") {
  Rewriter rewriter(read_graph(k_sums));
  const Graph& graph = rewriter.graph();
  const int a = graph.find("a"), b = graph.find("b"), n = graph.find("n"), s = graph.find("s");
  CHECK(rewriter.before(a, b));
  rewriter.move(n, b);
  CHECK(rewriter.position(n) == b);
  CHECK(rewriter.before(b, n));
  CHECK(rewriter.before(n, s));
  rewriter.move(b, a);
  CHECK(outline(rewriter.finish()).starts_with("a = Placeholder()\nb = Placeholder()\nn = Neg(b)"));
}

}  // namespace halfstep::test
