// The finite check, the loss scale, the learning rate and writing to variables.

#include "backend/cuda/kernels/update.h"

#include <algorithm>
#include <array>

#include "backend/cuda/kernels/scaling.h"
#include "backend/cuda/kernels/state.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

using kernels::UpdateParams;

/// An optimizer op: the number of slots after the variable, and the meaning of the inputs after
/// them. The last input may be `ok`.
struct UpdateInputs {
  std::string_view op;
  std::size_t slots;
  std::array<const void * UpdateParams::*, 8> inputs;
};

constexpr std::array k_update_inputs{
    UpdateInputs{"ResourceApplyGradientDescent", 0, {&UpdateParams::rate, &UpdateParams::gradient}},
    UpdateInputs{"ResourceApplyKerasMomentum",
                 1,
                 {&UpdateParams::rate, &UpdateParams::gradient, &UpdateParams::momentum}},
    UpdateInputs{
        "ResourceApplyKerasRMSProp",
        1,
        {&UpdateParams::rate, &UpdateParams::rho, &UpdateParams::epsilon, &UpdateParams::gradient}},
    UpdateInputs{"ResourceApplyRMSProp",
                 2,
                 {&UpdateParams::rate,
                  &UpdateParams::rho,
                  &UpdateParams::momentum,
                  &UpdateParams::epsilon,
                  &UpdateParams::gradient}},
    UpdateInputs{"ResourceApplyCenteredRMSProp",
                 3,
                 {&UpdateParams::rate,
                  &UpdateParams::rho,
                  &UpdateParams::momentum,
                  &UpdateParams::epsilon,
                  &UpdateParams::gradient}},
    UpdateInputs{"ResourceApplyAdam",
                 2,
                 {&UpdateParams::beta1_power,
                  &UpdateParams::beta2_power,
                  &UpdateParams::rate,
                  &UpdateParams::beta1,
                  &UpdateParams::beta2,
                  &UpdateParams::epsilon,
                  &UpdateParams::gradient}},
    UpdateInputs{"ResourceApplyAdamW",
                 2,
                 {&UpdateParams::beta1_power,
                  &UpdateParams::beta2_power,
                  &UpdateParams::rate,
                  &UpdateParams::weight_decay,
                  &UpdateParams::beta1,
                  &UpdateParams::beta2,
                  &UpdateParams::epsilon,
                  &UpdateParams::gradient}},
    UpdateInputs{"ResourceApplyAdagradV2",
                 1,
                 {&UpdateParams::rate, &UpdateParams::epsilon, &UpdateParams::gradient}},
};

const UpdateInputs& inputs_of(const std::string& op) {
  for (const UpdateInputs& row : k_update_inputs) {
    if (row.op == op) return row;
  }
  require(false, "{} is no update", op);
  return k_update_inputs[0];
}

/// Whether the last input is the `ok` flag.
bool guarded(const Facts& node) { return node.inputs.back().dtype == DType::boolean; }

kernels::Schedule schedule_named(std::string_view name) {
  using kernels::Schedule;
  constexpr std::array<std::pair<std::string_view, Schedule>, 6> k_schedules{
      {{"constant", Schedule::constant},
       {"piecewise_constant", Schedule::piecewise_constant},
       {"exponential_decay", Schedule::exponential_decay},
       {"cosine_decay", Schedule::cosine_decay},
       {"inverse_time_decay", Schedule::inverse_time_decay},
       {"polynomial_decay", Schedule::polynomial_decay}}};
  for (const auto& [word, schedule] : k_schedules) {
    if (word == name) return schedule;
  }
  require(false, "no schedule '{}'", name);
  return Schedule::constant;
}

Work prepare_update(const Facts& node, const Machine& machine) {
  const auto update = kernels::update_of(node.op);
  require(update.has_value(), "{} is no update", node.op);
  const UpdateInputs& inputs = inputs_of(node.op);
  const std::size_t first = 1 + inputs.slots;
  const std::size_t count = node.inputs.size() - first - (guarded(node) ? 1 : 0);
  std::size_t gradient = first;
  while (inputs.inputs.at(gradient - first) != &UpdateParams::gradient) ++gradient;
  UpdateParams params{.update = *update,
                      .dtype = node.attrs.get<DType>("T"),
                      .elements = node.input(gradient).shape.elements(),
                      .nesterov = node.attrs.get_or<bool>("use_nesterov", false),
                      .update_slots = node.attrs.get_or<bool>("update_slots", true)};
  return {
      [=, &inputs, guard = guarded(node), stream = machine.stream()](const Addresses& a) mutable {
        params.variable = a.variable<void>(0);
        for (std::size_t i = 0; i < inputs.slots; ++i) params.slots[i] = a.variable<void>(1 + i);
        for (std::size_t i = 0; i < count; ++i) params.*inputs.inputs[i] = a.in[first + i];
        params.ok = guard ? a.input<bool>(first + count) : nullptr;
        kernels::update(stream, params);
      }};
}

Work prepare_assign(const Facts& node, const Machine& machine) {
  const graph::TensorType& value = node.input(1);
  kernels::AssignParams params{.bytes = static_cast<std::size_t>(value.shape.elements()) *
                                        size_bytes(value.dtype)};
  return {
      [=, guard = node.inputs.size() > 2, stream = machine.stream()](const Addresses& a) mutable {
        params.variable = a.variable<void>(0);
        params.value = a.in[1];
        params.ok = guard ? a.input<bool>(2) : nullptr;
        kernels::assign(stream, params);
      }};
}

Work prepare_assign_add(const Facts& node, const Machine& machine) {
  kernels::AssignAddParams params{.dtype = node.input(1).dtype,
                                  .elements = node.input(1).shape.elements()};
  return {
      [=, guard = node.inputs.size() > 2, stream = machine.stream()](const Addresses& a) mutable {
        params.variable = a.variable<void>(0);
        params.value = a.in[1];
        params.ok = guard ? a.input<bool>(2) : nullptr;
        kernels::assign_add(stream, params);
      }};
}

Work prepare_all_finite(const Facts& node, const Machine& machine) {
  std::vector<kernels::CheckedTensor> tensors;
  for (const graph::TensorType& type : node.inputs) {
    tensors.push_back({.dtype = type.dtype, .elements = type.shape.elements()});
  }
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].x = a.in[i];
    kernels::all_finite(stream, {.tensors = tensors, .ok = a.output<bool>()});
  }};
}

Work prepare_loss_scale(const Facts& node, const Machine& machine) {
  const auto real = [&](std::string_view name) {
    return static_cast<float>(node.attrs.get<double>(name));
  };
  kernels::LossScaleParams params{
      .growth_factor = real("growth_factor"),
      .backoff_factor = real("backoff_factor"),
      .min_scale = real("min_scale"),
      .max_scale = real("max_scale"),
      .growth_steps = node.attrs.get<std::int64_t>("growth_steps"),
      .hysteresis = static_cast<std::int32_t>(node.attrs.get<std::int64_t>("hysteresis")),
      .grow_on_equal = node.attrs.get<bool>("grow_on_equal"),
      .guard = node.attrs.get<bool>("guard")};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.scale = a.variable<float>(0);
    params.good_steps = a.variable<std::int32_t>(1);
    params.hysteresis_left = a.variable<std::int32_t>(2);
    params.ok = a.input<bool>(3);
    kernels::update_loss_scale(stream, params);
  }};
}

Work prepare_learning_rate(const Facts& node, const Machine& machine) {
  const auto real = [&](std::string_view name) { return node.attrs.get<double>(name); };
  const auto& boundaries = node.attrs.get<std::vector<std::int64_t>>("boundaries");
  const auto& values = node.attrs.get<std::vector<double>>("values");
  kernels::LearningRateParams params{
      .schedule = schedule_named(node.attrs.get<std::string>("kind")),
      .base = real("base"),
      .decay_rate = real("decay_rate"),
      .alpha = real("alpha"),
      .end = real("end"),
      .power = real("power"),
      .warmup_start = real("warmup_start"),
      .warmup_target = real("warmup_target"),
      .decay_steps = node.attrs.get<std::int64_t>("decay_steps"),
      .warmup_steps = node.attrs.get<std::int64_t>("warmup_steps"),
      .staircase = node.attrs.get<bool>("staircase"),
      .cycle = node.attrs.get<bool>("cycle"),
      .pieces = values.size()};
  require(values.size() <= params.values.size() && boundaries.size() <= params.boundaries.size(),
          "{} pieces of a learning rate",
          values.size());
  std::copy(boundaries.begin(), boundaries.end(), params.boundaries.begin());
  std::copy(values.begin(), values.end(), params.values.begin());
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.step = a.input<std::int64_t>(0);
    params.rate = a.output<float>();
    kernels::learning_rate(stream, params);
  }};
}

}  // namespace

std::vector<Row> update_rows() {
  return {
      {"cuda/all_finite", prepare_all_finite},
      {"cuda/assign", prepare_assign},
      {"cuda/assign_add", prepare_assign_add},
      {"cuda/learning_rate", prepare_learning_rate},
      {"cuda/loss_scale", prepare_loss_scale},
      {"cuda/update", prepare_update},
  };
}

}  // namespace halfstep::backend::cuda::plugin
