#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> state_cases() {
  std::vector<OpCase> cases;
  cases.push_back({.name = "Identity/odd", .op = "Identity", .inputs = {uniform({3, 5})}});
  for (DType to : {DType::float32,
                   DType::float16,
                   DType::bfloat16,
                   DType::float64,
                   DType::int32,
                   DType::int64,
                   DType::uint8,
                   DType::boolean}) {
    cases.push_back({.name = fmt::format("Cast/{}", name(to)),
                     .op = "Cast",
                     .attrs = {{"DstT", to}},
                     .inputs = {uniform({3, 7, 5}, -50, 350)},
                     .magnitude = 350,
                     .check_gradient = to == DType::float64});
    cases.push_back({.name = fmt::format("Cast/{} special", name(to)),
                     .op = "Cast",
                     .attrs = {{"DstT", to}},
                     .inputs = {special({41})},
                     .check_gradient = false});
    cases.push_back({.name = fmt::format("Cast/{} of large values", name(to)),
                     .op = "Cast",
                     .attrs = {{"DstT", to}},
                     .inputs = {uniform({3, 41}, -1e10, 1e10)},
                     .magnitude = 1e10,
                     .check_gradient = false});
  }
  for (std::string_view op : {"AssignVariableOp", "AssignAddVariableOp"}) {
    const auto add = [&](std::string_view what, std::vector<Operand> inputs) {
      cases.push_back({.name = fmt::format("{}/{}", op, what),
                       .op = std::string(op),
                       .inputs = std::move(inputs)});
      // There is no sum of booleans.
      cases.back().dtypes = {DType::float32,
                             DType::float16,
                             DType::bfloat16,
                             DType::float64,
                             DType::int32,
                             DType::int64,
                             DType::uint8};
    };
    add("always", {variable({3, 7}), uniform({3, 7})});
    add("if", {variable({3, 7}), uniform({3, 7}), flags({})});
    add("if not", {variable({5}), uniform({5}), flags({})});
    add("scalar", {variable({}), uniform({})});
  }
  return cases;
}

}  // namespace halfstep::testing
