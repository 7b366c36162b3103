#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

struct Axes {
  std::string_view what;
  Shape shape;
  std::vector<std::int64_t> axes;
  bool keep_dims = false;
};

const std::vector<Axes>& all_axes() {
  static const std::vector<Axes> k_all{{"last", {4, 9}, {-1}},
                                       {"first", {9, 4}, {0}},
                                       {"all", {3, 5, 7}, {0, 1, 2}},
                                       {"image", {2, 3, 5, 4}, {1, 2}},
                                       {"kept", {3, 5, 7}, {0, 2}, true},
                                       {"none", {3, 4}, {}},
                                       {"scalar", {}, {}},
                                       {"long", {2, 3001}, {1}},
                                       {"extent 1", {5, 1}, {1}}};
  return k_all;
}

}  // namespace

std::vector<OpCase> reduce_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string_view op, auto make, double magnitude, std::int64_t terms = 8) {
    for (const Axes& a : all_axes()) {
      cases.push_back({.name = fmt::format("{}/{}", op, a.what),
                       .op = std::string(op),
                       .attrs = {{"keep_dims", a.keep_dims}},
                       .inputs = {make(a.shape), ints(a.axes)},
                       .terms = terms,
                       .magnitude = magnitude});
    }
  };
  const auto any = [](const Shape& s) { return uniform(s); };
  add("Sum", any, 6002, 1);
  add("Mean", any, 2);
  for (std::string_view op : {"Max", "Min"}) {
    add(
        op, [](const Shape& s) { return distinct(s, -2, 2); }, 2);
    cases.push_back({.name = fmt::format("{}/special", op),
                     .op = std::string(op),
                     .inputs = {special({5, 41}), ints({1})},
                     .check_gradient = false});
  }
  for (const auto& [shape, axes] : {std::pair<Shape, std::vector<std::int64_t>>{{3, 7}, {1}},
                                    std::pair<Shape, std::vector<std::int64_t>>{{7, 3}, {0}}}) {
    cases.push_back({.name = fmt::format("Prod/{}", to_string(shape)),
                     .op = "Prod",
                     .inputs = {away(shape, 0.5, 1.5), ints(axes)},
                     .magnitude = 32});
  }
  add("All", flags, 1);
  add("Any", flags, 1);
  for (std::string_view op : {"ArgMax", "ArgMin"}) {
    for (std::int64_t axis : {0, 1, -1}) {
      cases.push_back({.name = fmt::format("{}/axis {}", op, axis),
                       .op = std::string(op),
                       .inputs = {distinct({5, 4, 7}), int_scalar(axis)}});
    }
    cases.push_back({.name = fmt::format("{}/ties", op),
                     .op = std::string(op),
                     .attrs = {{"output_type", DType::int32}},
                     .inputs = {lattice({5, 40}), int_scalar(1)}});
    cases.push_back({.name = fmt::format("{}/long", op),
                     .op = std::string(op),
                     .inputs = {lattice({3, 2500}), int_scalar(1)}});
    cases.push_back({.name = fmt::format("{}/special", op),
                     .op = std::string(op),
                     .inputs = {special({9, 5}), int_scalar(1)}});
  }
  cases.push_back(
      {.name = "L2Loss/odd", .op = "L2Loss", .inputs = {uniform({3, 5, 7})}, .magnitude = 256});
  cases.push_back({.name = "L2Loss/empty", .op = "L2Loss", .inputs = {uniform({0})}});
  cases.push_back(
      {.name = "InTopKV2/5 of 10",
       .op = "InTopKV2",
       .inputs = {typed(uniform({9, 10}), DType::float32), whole({9}, 0, 10), number(5)}});
  cases.push_back(
      {.name = "InTopKV2/ties and missing targets",
       .op = "InTopKV2",
       .inputs = {typed(lattice({40, 10}), DType::float32), whole({40}, -1, 11), number(2)}});
  cases.push_back(
      {.name = "InTopKV2/special",
       .op = "InTopKV2",
       .inputs = {typed(special({20, 3}), DType::float32), whole({20}, 0, 3), number(1)}});
  return cases;
}

}  // namespace halfstep::testing
