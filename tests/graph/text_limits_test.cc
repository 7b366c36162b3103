// Graph texts that ask for much memory or time in few letters.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <ostream>

#include "core/system.h"
#include "graph/ops/ops.h"
#include "graph/text.h"
#include "support/damage.h"

namespace halfstep::graph {
namespace {

ParsedGraph parse_lines(const std::string& text) { return parse_graph(text, "g.txt", op_table()); }

/// The first problem of a text, "" when there is none.
std::string problem(const std::string& text) {
  try {
    parse_lines(text);
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.problems().at(0).message;
  }
  return "";
}

/// The text of `line` for each number below `count`.
template <class Line>
std::string lines(int count, Line line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line(std::to_string(i)) + "\n";
  return text;
}

/// Infers the types of graphs of which the largest has `n` inputs, edges or nodes.
void infer_types(int n) {
  std::string wide = "x = Const {dtype: half}\nn = IdentityN(x";
  for (int i = 1; i < n; ++i) wide += ", x";
  const ParsedGraph parsed = parse_lines(wide + fmt::format(")\nm = IdentityN(n:{})\n", n - 1));
  CHECK(parsed.graph.node(parsed.graph.find("m")).outputs.at(0).dtype == DType::float16);
  // Loops of their own, which hang on nothing that is known.
  const ParsedGraph loops = parse_lines(lines(n / 2, [](const std::string& i) {
    return "m" + i + " = Merge(n" + i + ", n" + i + ")\nn" + i + " = NextIteration(m" + i + ")";
  }));
  CHECK(loops.graph.node(loops.graph.find("n7")).outputs.at(0).dtype == DType::float32);
  parse_lines(lines(n, [](const std::string& i) { return "variable v" + i + " {shape: [1]}"; }));
  // Every node goes back to the first.
  const std::string cycles = lines(n / 3, [](const std::string& i) {
    return fmt::format("n{} = Imported(n{}, n0)", i, std::stoi(i) + 1);
  });
  CHECK(problem(fmt::format("{}n{} = Const\n", cycles, n / 3)).size() < 500);
}

}  // namespace

TEST_CASE("text limits: ports that a count or a port number asks for are bounded") {
  const std::uint64_t before = peak_rss_bytes();
  const std::string split = "a = Const {dtype: int32}\nx = Const\n";
  // Under 3 KB each; 2 GB once.
  CHECK(problem(split + lines(100,
                              [](const std::string& i) {
                                return "s" + i + "=Split(a,x)\nr" + i + "=Relu(s" + i + ":65535)";
                              }))
            .find("ports; beyond 16 a node, the nodes of a graph may have 262144 in all") !=
        std::string::npos);
  CHECK(problem(split + lines(100,
                              [](const std::string& i) {
                                return "s" + i + "=Split(a,x){num_split:65536}";
                              }))
            .find("ports; beyond") != std::string::npos);
  CHECK(problem(lines(100, [](const std::string& i) {
          return "f" + i + "=Imported\nr" + i + "=Relu(f" + i + ":65535)";
        })).find("ports; beyond") != std::string::npos);
  CHECK(peak_rss_bytes() - before < std::uint64_t{300} << 20U);
  // A few such nodes, and many with as many ports as real ones have, are fine.
  CHECK(problem(split + "s = Split(a, x)\nr = Relu(s:65535)\n" +
                lines(10'000,
                      [](const std::string& i) { return "s" + i + "=Split(a,x){num_split:16}"; }))
            .empty());
}

TEST_CASE("text limits: names and values, attributes and mistakes are bounded") {
  std::string list = "x = Const {value: [1";
  for (int i = 0; i < 2'100'000; ++i) list += ",1";
  CHECK(problem(list + "]}\n") == "a graph has at most 2000000 names and values");
  std::string attrs = "f = Imported {";
  for (int i = 0; i < 2000; ++i) attrs += "a" + std::to_string(i) + ": 1,";
  CHECK(problem(attrs + "}\n") == "more than 1000 attributes");
  try {
    parse_lines(lines(100'000, [](const std::string&) { return std::string("="); }));
    FAIL_CHECK("parsed");
  } catch (const UserError& error) {
    CHECK(error.problems().size() == 1001);
    CHECK(error.problems().back().message == "this line and those that follow were not read");
  }
  try {
    parse_lines(
        lines(100'000, [](const std::string& i) { return "n" + i + " = Relu(m" + i + ")"; }));
    FAIL_CHECK("parsed");
  } catch (const UserError& error) {
    CHECK(error.problems().size() == 1001);
  }
}

TEST_CASE("text limits: types are inferred in time linear in the text") {
  const auto processor_time = [](int n) {
    const std::clock_t start = std::clock();
    infer_types(n);
    return static_cast<double>(std::clock() - start);
  };
  // Linear growth is 16 times the time, with misses of the caches up to 60; quadratic growth 256.
  const double base = processor_time(5'000);
  CHECK(processor_time(80'000) < 128 * base);
}

TEST_CASE("text limits: a damaged graph is read or refused in little memory") {
  constexpr std::string_view k_valid = R"(function Func1
no_kernel Tanh float16
x = Const {dtype: float32, value: [1.0, 2.5], shape: [3]} @/device:GPU:0
r = Relu(x, ^n)
n = NoOp
s = Split(a, x) {num_split: 3}
a = Const {dtype: int32}
idn = IdentityN(r, s:2)
f = Func1(idn:1) {mode: "a\nb", list: [1, 2]}
variable w {dtype: float32, shape: [2], init: uniform}
result loss f:0
preserve f, m
)";
  constexpr std::array<std::string_view, 12> k_tokens{":65535",
                                                      "65536",
                                                      "-1",
                                                      "99999999999999999999",
                                                      "[[[[",
                                                      "{N: 65536}",
                                                      "Tout: [half]",
                                                      "_shape: [[9223372036854775807, 2]]",
                                                      "\"",
                                                      "^",
                                                      "= IdentityN(",
                                                      "nan"};
  const test::DamageOutcome outcome = test::read_damaged(
      std::string(k_valid), k_tokens, 2000, [](const std::string& text) { parse_lines(text); });
  CHECK(outcome.refused > 0);
}

}  // namespace halfstep::graph
