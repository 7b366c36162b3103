#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> unary_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string_view op, std::string_view what, Operand x, bool slope = true) {
    cases.push_back({.name = fmt::format("{}/{}", op, what),
                     .op = std::string(op),
                     .inputs = {std::move(x)},
                     .check_gradient = slope});
  };
  const Shape odd{3, 5, 7};
  for (std::string_view op :
       {"Abs", "Erf", "Erfc", "Exp", "Expm1", "Neg", "Sign", "Square", "OnesLike", "ZerosLike"}) {
    add(op, "odd", away(odd));
    add(op, "scalar", away({}));
    add(op, "empty", away({0, 3}));
    add(op, "special", special({41}), false);
  }
  add("Erfinv", "odd", uniform(odd, -0.9, 0.9));
  add("Erfinv", "near one", uniform({33}, 0.99, 1), false);
  add("Erfinv", "near zero", uniform({17}, -0.001, 0.001));
  add("Erfinv", "empty", uniform({0, 3}, -1, 1));
  add("Erfinv", "special", special({41}, -1, 1), false);
  for (std::string_view op : {"Ceil", "Floor", "Round"}) {
    add(op, "odd", lattice(odd, 0.125));
    add(op, "halves", lattice({29}), false);
    add(op, "special", special({41}), false);
  }
  for (std::string_view op : {"Log", "Sqrt", "Rsqrt", "Reciprocal"}) {
    add(op, "odd", uniform(odd, 0.5, 4));
    add(op, "large", uniform({33}, 100, 10000), false);
    add(op, "special", special({41}, 0.1, 4), false);
  }
  add("Log1p", "odd", uniform(odd, -0.5, 4));
  add("Log1p", "near zero", uniform({17}, -0.001, 0.001));
  add("Expm1", "near zero", uniform({17}, -0.001, 0.001));
  for (std::string_view op : {"IsFinite", "IsInf", "IsNan"})
    add(op, "special", special(odd), false);
  cases.push_back({.name = "LogicalNot/odd", .op = "LogicalNot", .inputs = {flags(odd)}});
  for (std::string_view op : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad"}) {
    cases.push_back({.name = fmt::format("{}/odd", op),
                     .op = std::string(op),
                     .inputs = {uniform(odd, 0.5, 2), uniform(odd)},
                     .magnitude = 16});
  }
  return cases;
}

}  // namespace halfstep::testing
