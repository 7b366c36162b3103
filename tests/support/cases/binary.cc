#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

struct Pair {
  std::string_view what;
  Shape x;
  Shape y;
};

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> k_pairs{{"same", {3, 5, 7}, {3, 5, 7}},
                                         {"scalar", {2, 17}, {}},
                                         {"scalar first", {}, {2, 17}},
                                         {"row", {4, 5}, {5}},
                                         {"column", {4, 5}, {4, 1}},
                                         {"both ways", {3, 1, 5}, {2, 1}},
                                         {"vector of one", {1}, {}},
                                         {"empty", {0, 5}, {5}}};
  return k_pairs;
}

}  // namespace

std::vector<OpCase> binary_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string_view op, auto make_x, auto make_y) {
    for (const Pair& p : pairs()) {
      cases.push_back({.name = fmt::format("{}/{}", op, p.what),
                       .op = std::string(op),
                       .inputs = {make_x(p.x), make_y(p.y)},
                       .magnitude = 64});
    }
  };
  const auto any = [](const Shape& s) { return uniform(s); };
  const auto positive = [](const Shape& s) { return uniform(s, 0.5, 2); };
  const auto not_zero = [](const Shape& s) { return away(s, 0.5, 2); };
  const auto low = [](const Shape& s) { return lattice(s); };
  const auto high = [](const Shape& s) { return lattice(s, 0.125); };
  for (std::string_view op : {"Add", "AddV2", "Sub", "Mul", "SquaredDifference"}) add(op, any, any);
  for (std::string_view op : {"RealDiv", "DivNoNan"}) add(op, any, not_zero);
  add("FloorDiv", high, [](const Shape& s) { return uniform(s, 1, 1); });
  add("Pow", positive, any);
  for (std::string_view op : {"Maximum",
                              "Minimum",
                              "Equal",
                              "NotEqual",
                              "Less",
                              "LessEqual",
                              "Greater",
                              "GreaterEqual"}) {
    add(op, low, high);
  }
  for (std::string_view op : {"LogicalAnd", "LogicalOr"}) add(op, flags, flags);

  const auto special_pair = [&](std::string_view op) {
    cases.push_back({.name = fmt::format("{}/special", op),
                     .op = std::string(op),
                     .inputs = {special({7, 41}), special({41})},
                     .check_gradient = false});
  };
  for (std::string_view op : {"AddV2",
                              "Sub",
                              "Mul",
                              "RealDiv",
                              "DivNoNan",
                              "Maximum",
                              "Minimum",
                              "Equal",
                              "NotEqual",
                              "Less",
                              "LessEqual",
                              "Greater",
                              "GreaterEqual"}) {
    special_pair(op);
  }
  // Ties: equal elements on both sides.
  for (std::string_view op : {"Maximum", "Minimum", "Equal", "LessEqual", "Less"}) {
    cases.push_back({.name = fmt::format("{}/ties", op),
                     .op = std::string(op),
                     .inputs = {lattice({3, 29}), lattice({29})},
                     .check_gradient = false});
  }
  for (int n : {1, 2, 5}) {
    cases.push_back({.name = fmt::format("AddN/{}", n),
                     .op = "AddN",
                     .inputs = std::vector<Operand>(static_cast<std::size_t>(n), uniform({3, 7})),
                     .magnitude = 16});
  }
  const auto select = [&](std::string_view op, std::string_view what, Shape c, Shape t, Shape e) {
    cases.push_back({.name = fmt::format("{}/{}", op, what),
                     .op = std::string(op),
                     .inputs = {flags(c), uniform(t), uniform(e)}});
  };
  select("Select", "same", {3, 5}, {3, 5}, {3, 5});
  select("Select", "rows", {3}, {3, 5}, {3, 5});
  select("SelectV2", "same", {3, 5}, {3, 5}, {3, 5});
  select("SelectV2", "broadcast", {5}, {3, 1}, {2, 1, 1});
  select("SelectV2", "scalar", {}, {4}, {});
  cases.push_back({.name = "ClipByValue/scalars",
                   .op = "ClipByValue",
                   .inputs = {lattice({3, 11}), number(-0.625), number(0.875)}});
  cases.push_back(
      {.name = "ClipByValue/tensors",
       .op = "ClipByValue",
       .inputs = {lattice({3, 11}), uniform({3, 11}, -1.1, -1.05), uniform({}, 0.9, 0.95)}});
  cases.push_back({.name = "ClipByValue/special",
                   .op = "ClipByValue",
                   .inputs = {special({41}), number(-0.5), number(2)},
                   .check_gradient = false});
  return cases;
}

}  // namespace halfstep::testing
