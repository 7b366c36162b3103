#pragma once
// How the definition of an op like ResourceApplyAdam gives the arguments of its rule
// (functions/update.h).

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/functions/update.h"
#include "core/error.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend {

/// A scalar of the rule, and the index of the input that holds it.
template <class Number>
struct ScalarInput {
  Number functions::UpdateScalars<Number>::*scalar;
  std::size_t input;
};

/// The scalars in the order of the inputs: those that are neither handles, the gradient nor `ok`.
template <class Number>
std::vector<ScalarInput<Number>> scalar_inputs(const graph::OpDef& op) {
  using Scalars = functions::UpdateScalars<Number>;
  static constexpr std::array<std::pair<std::string_view, Number Scalars::*>, 10> k_scalars{
      {{"alpha", &Scalars::rate},
       {"lr", &Scalars::rate},
       {"momentum", &Scalars::momentum},
       {"rho", &Scalars::rho},
       {"beta1_power", &Scalars::beta1_power},
       {"beta2_power", &Scalars::beta2_power},
       {"beta1", &Scalars::beta1},
       {"beta2", &Scalars::beta2},
       {"epsilon", &Scalars::epsilon},
       {"weight_decay", &Scalars::weight_decay}}};
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(op);
  std::vector<ScalarInput<Number>> all;
  for (std::size_t i = ports.resources; i < ports.inputs; ++i) {
    if (i == ports.gradient) continue;
    const auto* named = std::ranges::find_if(
        k_scalars, [&](const auto& scalar) { return scalar.first == op.inputs[i].name; });
    require(named != k_scalars.end(), "no update has an input '{}'", op.inputs[i].name);
    all.push_back({named->second, i});
  }
  return all;
}

/// The attributes of a node that its rule needs.
struct UpdateOptions {
  double weight_decay;  ///< the variable is reduced by this share times the rate first
  bool flag;

  UpdateOptions(const graph::Attrs& attrs, const char* flag_name)
      : weight_decay(attrs.get_or<double>("weight_decay", 0)),
        flag(flag_name != nullptr && attrs.get<bool>(flag_name)) {}
};

}  // namespace halfstep::backend
