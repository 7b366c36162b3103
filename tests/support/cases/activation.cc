#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> activation_cases() {
  std::vector<OpCase> cases;
  const Shape odd{3, 5, 7};
  for (std::string_view op : {"Relu",
                              "Relu6",
                              "LeakyRelu",
                              "Elu",
                              "Selu",
                              "Gelu",
                              "GeluApproximate",
                              "Softplus",
                              "Softsign",
                              "Sigmoid",
                              "Tanh"}) {
    const auto add = [&](std::string_view what, Operand x, bool slope = true) {
      cases.push_back({.name = fmt::format("{}/{}", op, what),
                       .op = std::string(op),
                       .inputs = {std::move(x)},
                       .magnitude = 16,
                       .check_gradient = slope});
    };
    add("odd", away(odd));
    add("above six", uniform({19}, 6.5, 12));
    add("far", away({31}, 20, 200), false);
    add("special", special({41}), false);
    add("empty", away({4, 0}));
  }
  for (std::string_view op : {"ReluGrad",
                              "Relu6Grad",
                              "LeakyReluGrad",
                              "GeluGrad",
                              "GeluApproximateGrad",
                              "SoftplusGrad",
                              "SoftsignGrad"}) {
    cases.push_back({.name = fmt::format("{}/odd", op),
                     .op = std::string(op),
                     .inputs = {uniform(odd), away(odd, 0.25, 9)},
                     .magnitude = 16});
  }
  for (std::string_view op : {"EluGrad", "SeluGrad"}) {
    cases.push_back({.name = fmt::format("{}/odd", op),
                     .op = std::string(op),
                     .inputs = {uniform(odd), away(odd, 0.05, 0.95)},
                     .magnitude = 16});
  }
  for (std::string_view op : {"SigmoidGrad", "TanhGrad"}) {
    cases.push_back({.name = fmt::format("{}/odd", op),
                     .op = std::string(op),
                     .inputs = {uniform(odd, 0.05, 0.95), uniform(odd)}});
  }
  cases.push_back({.name = "LeakyRelu/alpha",
                   .op = "LeakyRelu",
                   .attrs = {{"alpha", 0.01}},
                   .inputs = {away({2, 9})}});
  cases.push_back({.name = "LeakyReluGrad/alpha",
                   .op = "LeakyReluGrad",
                   .attrs = {{"alpha", 0.3}},
                   .inputs = {uniform({2, 9}), away({2, 9})}});
  return cases;
}

}  // namespace halfstep::testing
