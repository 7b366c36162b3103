#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> optimizer_cases() {
  std::vector<OpCase> cases;
  const Shape shape{5, 7};
  const auto add = [&](std::string_view op,
                       std::string_view what,
                       std::vector<Operand> inputs,
                       graph::Attrs attrs = {}) {
    for (const bool guarded : {false, true}) {
      cases.push_back({.name = fmt::format("{}/{}{}", op, what, guarded ? ", guarded" : ""),
                       .op = std::string(op),
                       .attrs = attrs,
                       .inputs = inputs,
                       .terms = 16,
                       .magnitude = 8});
      if (guarded) cases.back().inputs.push_back(flags({}));
    }
    cases.push_back(cases.back());
    cases.back().name += ", weight decay";
    cases.back().attrs.set("weight_decay", 20.0);
  };
  const Operand w = variable(shape), g = uniform(shape);
  const Operand positive = variable(shape, 0.5, 2), small = variable(shape, -0.25, 0.25);
  const Operand lr = number(0.01), rho = number(0.9), epsilon = number(0x1p-10);
  const Operand beta1_power = number(0.5), beta2_power = number(0.75), beta2 = number(0.99);
  add("ResourceApplyGradientDescent", "plain", {w, lr, g});
  for (const bool nesterov : {false, true}) {
    const std::string what = nesterov ? "nesterov" : "plain";
    add("ResourceApplyKerasMomentum", what, {w, small, lr, g, rho}, {{"use_nesterov", nesterov}});
    add("ResourceApplyAdam",
        what,
        {w, small, positive, beta1_power, beta2_power, lr, rho, beta2, epsilon, g},
        {{"use_nesterov", nesterov}});
  }
  add("ResourceApplyAdamW",
      "plain",
      {w, small, positive, beta1_power, beta2_power, lr, number(0.25), rho, beta2, epsilon, g});
  add("ResourceApplyKerasRMSProp", "plain", {w, positive, lr, rho, epsilon, g});
  add("ResourceApplyRMSProp", "plain", {w, positive, small, lr, rho, number(0.5), epsilon, g});
  add("ResourceApplyCenteredRMSProp",
      "plain",
      {w, small, positive, small, lr, rho, number(0.5), epsilon, g});
  for (const bool update_slots : {true, false}) {
    add("ResourceApplyAdagradV2",
        update_slots ? "plain" : "fixed slots",
        {w, positive, lr, epsilon, g},
        {{"update_slots", update_slots}});
  }
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    cases.push_back(
        {.name = fmt::format("FusedUpdate/{}", name(dtype)),
         .op = "FusedUpdate",
         .attrs = {{"rule", std::string("ResourceApplyKerasRMSProp")}, {"guarded", true}},
         .inputs = {w, positive, lr, rho, epsilon, typed(g, dtype), number(0.25), flags({})},
         .terms = 16,
         .magnitude = 8,
         .check_gradient = false});
    cases.push_back(cases.back());
    cases.back().name += ", weight decay";
    cases.back().attrs.set("weight_decay", 20.0);
    for (const bool longer : {false, true}) {
      cases.push_back(
          {.name = fmt::format("GroupedUpdate/{}{}", longer ? "longer rows, " : "", name(dtype)),
           .op = "GroupedUpdate",
           .attrs = {{"rule", std::string("ResourceApplyKerasRMSProp")},
                     {"copies", std::vector<std::int64_t>{0, 0}},
                     {"unscaled", true},
                     {"guarded", true}},
           .inputs = {w,
                      positive,
                      variable({70}),
                      variable({70}, 0.25, 2),
                      typed(longer ? uniform({5, 8}) : g, dtype),
                      uniform({longer ? 72 : 70}),
                      lr,
                      rho,
                      epsilon,
                      number(0.25),
                      flags({})},
           .terms = 16,
           .magnitude = 8,
           .check_gradient = false});
      OpCase decayed = cases.back();
      decayed.name += ", decayed";
      decayed.attrs.set("decayed", std::vector<std::int64_t>{1, 0});
      decayed.inputs.insert(decayed.inputs.end() - 2, number(0.125));
      cases.push_back(decayed);
      // Of gradient and variable: the first sees the variable before it decays.
      decayed.name += ", weight decay";
      decayed.attrs.set("weight_decay", 20.0);
      cases.push_back(std::move(decayed));
    }
  }
  Operand updates = indices({}, 0, 100, DType::int64);
  updates.given = {41};
  for (const std::string_view rule : {"ResourceApplyAdam", "ResourceApplyAdamW"}) {
    OpCase c{.name = fmt::format("GroupedUpdate/counted {}", rule),
             .op = "GroupedUpdate",
             .attrs = {{"rule", std::string(rule)},
                       {"copies", std::vector<std::int64_t>{0}},
                       {"counted", true}},
             .inputs = {w, small, positive, g, updates, updates, lr, rho, beta2, epsilon},
             .terms = 16,
             .magnitude = 8,
             .check_gradient = false};
    if (rule == "ResourceApplyAdamW") c.inputs.insert(c.inputs.begin() + 7, number(0.01));
    c.dtypes = DTypeSet{DType::float32};
    cases.push_back(std::move(c));
  }
  cases.push_back(
      {.name = "MovingAverages/two",
       .op = "MovingAverages",
       .attrs = {{"momentum", std::vector<double>{0.99, 0.9}},
                 {"share", std::vector<double>{0.01, 0.07}},
                 {"guarded", true}},
       .inputs = {variable({5, 7}), variable({601}), uniform({5, 7}), uniform({601}), flags({})},
       .terms = 2,
       .check_gradient = false});
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const std::int64_t columns : {0, 8}) {
      cases.push_back({.name = fmt::format("CastVariable/{} to rows of {}", name(dtype), columns),
                       .op = "CastVariable",
                       .attrs = {{"DstT", dtype}, {"columns", columns}},
                       .inputs = {w},
                       .check_gradient = false});
    }
  }
  return cases;
}

}  // namespace halfstep::testing
