// The finite check, the loss scale, the learning rate and writing to variables.

#include "backend/cuda/kernels/update.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/scaling.h"
#include "backend/cuda/kernels/state.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cuda::plugin {
namespace {

using Scalars = kernels::UpdateScalars<const void*>;
using Scalar = const void* Scalars::*;

Scalar scalar_named(std::string_view input) {
  static constexpr std::array<std::pair<std::string_view, Scalar>, 10> k_scalars{
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
  for (const auto& [word, scalar] : k_scalars) {
    if (word == input) return scalar;
  }
  require(false, "no update has an input '{}'", input);
  return nullptr;
}

/// The scalars of an op like ResourceApplyAdam with their inputs: those that are neither handles,
/// the gradient nor `ok`.
std::vector<std::pair<Scalar, std::size_t>> scalars_of(const graph::OpDef& rule) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(rule);
  std::vector<std::pair<Scalar, std::size_t>> scalars;
  for (std::size_t i = ports.resources; i < ports.inputs; ++i) {
    if (i != ports.gradient) scalars.emplace_back(scalar_named(rule.inputs[i].name), i);
  }
  return scalars;
}

/// The inputs of a launch by number.
struct UpdateLayout {
  struct Tensor {
    std::size_t variable = 0;  ///< its slots follow
    std::size_t gradient = 0;
    std::optional<std::size_t> copy = {};
    bool decayed = false;
  };
  std::vector<Tensor> tensors = {};
  std::size_t slots = 0;  ///< per tensor
  std::vector<std::pair<Scalar, std::size_t>> scalars = {};
  std::optional<std::size_t> updates = {}, ok = {};
};

/// An op like ResourceApplyAdam, or a FusedUpdate of such a rule.
UpdateLayout layout_of_one(const Facts& node, const graph::OpDef& rule) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(rule);
  UpdateLayout layout{.tensors = {{.gradient = ports.gradient}},
                      .slots = ports.resources - 1,
                      .scalars = scalars_of(rule)};
  std::size_t next = ports.inputs;
  if (node.op == graph::ops::k_fused_update) {
    layout.scalars.emplace_back(&Scalars::unscale, next++);
  }
  if (next < node.inputs.size()) layout.ok = next;
  return layout;
}

UpdateLayout layout_of_group(const Facts& node, const graph::OpDef& rule) {
  const graph::ops::GroupedUpdatePorts ports = graph::ops::grouped_update_ports(node.attrs);
  UpdateLayout layout{.slots = ports.rule.resources - 1};
  for (std::size_t t = 0; t < ports.tensors; ++t) {
    layout.tensors.push_back({.variable = ports.handle(t, 0), .gradient = ports.gradients + t});
    if (ports.copies[t] >= 0) layout.tensors[t].copy = static_cast<std::size_t>(ports.copies[t]);
    layout.tensors[t].decayed = !ports.decayed.empty() && ports.decayed[t] != 0;
  }
  std::size_t next = ports.scalars;
  for (const auto& [scalar, input] : scalars_of(rule)) {
    const bool power = scalar == &Scalars::beta1_power || scalar == &Scalars::beta2_power;
    if (power && node.attrs.get<bool>("counted")) {
      layout.updates = next++;
    } else {
      layout.scalars.emplace_back(scalar, next++);
    }
  }
  if (!ports.decayed.empty()) layout.scalars.emplace_back(&Scalars::decay, next++);
  if (ports.unscaled) layout.scalars.emplace_back(&Scalars::unscale, next++);
  if (ports.guarded) layout.ok = next;
  return layout;
}

Work prepare_update(const Facts& node, const Machine& machine) {
  const graph::AttrValue* fused = node.attrs.find("rule");
  const std::string& name = fused != nullptr ? std::get<std::string>(*fused) : node.op;
  const kernels::Update update = kernels::update_of(name);
  require(update != nullptr, "{} is no update", name);
  const graph::OpDef& rule = *graph::op_table().find(name);
  const UpdateLayout layout = node.op == graph::ops::k_grouped_update ? layout_of_group(node, rule)
                                                                      : layout_of_one(node, rule);
  std::vector<kernels::UpdatedTensor> tensors;
  for (const UpdateLayout::Tensor& tensor : layout.tensors) {
    const graph::TensorType& gradient = node.input(tensor.gradient);
    const Shape& variable = node.input(tensor.variable).shape;
    tensors.push_back({.gradient_dtype = gradient.dtype, .elements = variable.elements()});
    tensors.back().decayed = tensor.decayed;
    if (variable.rank() > 0) {
      tensors.back().columns = variable.back();
      tensors.back().padded_columns = gradient.shape.back();
    }
    if (tensor.copy) tensors.back().copy_dtype = node.input(*tensor.copy).dtype;
  }
  kernels::UpdateParams params{.dtype = node.attrs.get<DType>("T"),
                               .reciprocal = node.attrs.get_or<bool>("reciprocal", false),
                               .decay_by_rate = node.attrs.get_or<double>("weight_decay", 0),
                               .nesterov = node.attrs.get_or<bool>("use_nesterov", false),
                               .update_slots = node.attrs.get_or<bool>("update_slots", true)};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const UpdateLayout::Tensor& from = layout.tensors[t];
      tensors[t].variable = a.variable<void>(from.variable);
      for (std::size_t i = 0; i < layout.slots; ++i) {
        tensors[t].slots[i] = a.variable<void>(from.variable + 1 + i);
      }
      tensors[t].gradient = a.in[from.gradient];
      if (from.copy) tensors[t].copy = a.variable<void>(*from.copy);
    }
    params.tensors = tensors;
    for (const auto& [scalar, input] : layout.scalars) params.scalars.*scalar = a.in[input];
    params.updates = layout.updates ? a.input<std::int64_t>(*layout.updates) : nullptr;
    params.ok = layout.ok ? a.input<bool>(*layout.ok) : nullptr;
    update(stream, params);
  }};
}

/// The 16-bit copy of a float32 variable.
Work prepare_cast_variable(const Facts& node, const Machine& machine) {
  const Shape &from = node.input(0).shape, &to = node.output().shape;
  if (from != to) {
    kernels::CastRowsParams params{.to = node.output().dtype,
                                   .rows = from.elements(0, from.rank() - 1),
                                   .columns = from.back(),
                                   .padded = to.back()};
    return {[=, stream = machine.stream()](const Addresses& a) mutable {
      params.x = a.input<float>(0);
      params.y = a.out[0];
      kernels::cast_rows(stream, params);
    }};
  }
  kernels::CastParams params{.from = DType::float32,
                             .to = node.output().dtype,
                             .elements = node.output().shape.elements()};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[0];
    params.y = a.out[0];
    kernels::cast(stream, params);
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

Work prepare_moving_averages(const Facts& node, const Machine& machine) {
  const auto& momentum = node.attrs.get<std::vector<double>>("momentum");
  const auto& share = node.attrs.get<std::vector<double>>("share");
  static_assert(kernels::MovingAveragesParams::k_max_tensors == graph::ops::k_max_averages);
  kernels::MovingAveragesParams params{.count = momentum.size()};
  for (std::size_t i = 0; i < params.count; ++i) {
    params.tensors.at(i) = {.elements = node.input(params.count + i).shape.elements(),
                            .momentum = static_cast<float>(momentum[i]),
                            .share = static_cast<float>(share[i])};
  }
  return {[=, guard = node.attrs.get<bool>("guarded"), stream = machine.stream()](
              const Addresses& a) mutable {
    for (std::size_t i = 0; i < params.count; ++i) {
      params.tensors.at(i).average = a.variable<float>(i);
      params.tensors.at(i).value = a.input<float>(params.count + i);
    }
    params.ok = guard ? a.input<bool>(2 * params.count) : nullptr;
    kernels::moving_averages(stream, params);
  }};
}

Work prepare_all_finite(const Facts& node, const Machine& machine) {
  const bool unscaled = node.attrs.get<bool>("unscaled");
  const bool reciprocal = node.attrs.get<bool>("reciprocal");
  std::vector<kernels::CheckedTensor> tensors;
  for (std::size_t i = 0; i + (unscaled ? 1 : 0) < node.inputs.size(); ++i) {
    const graph::TensorType& type = node.input(i);
    tensors.push_back({.dtype = type.dtype, .elements = type.shape.elements()});
  }
  return {[=, &machine](const Addresses& a) mutable {
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].x = a.in[i];
    kernels::all_finite(machine.stream(),
                        {.tensors = tensors,
                         .unscale = unscaled ? a.input<float>(tensors.size()) : nullptr,
                         .reciprocal = reciprocal,
                         .ok = a.output<bool>(),
                         .tickets = machine.tickets});
  }};
}

Work prepare_squared_norms(const Facts& node, const Machine& machine) {
  std::vector<kernels::SquaredTensor> tensors;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const graph::TensorType& type = node.input(i);
    tensors.push_back({{.dtype = type.dtype, .elements = type.shape.elements()}});
  }
  return {[=, &machine, unscaled = node.attrs.get<bool>("unscaled")](const Addresses& a) mutable {
            for (std::size_t i = 0; i < tensors.size(); ++i) {
              tensors[i].x = a.in[i];
              tensors[i].norm = static_cast<float*>(a.out[i]);
            }
            kernels::squared_norms(machine.stream(),
                                   {.tensors = tensors,
                                    .unscale = unscaled ? a.input<float>(tensors.size()) : nullptr,
                                    .workspace = a.workspace,
                                    .tickets = machine.tickets});
          },
          kernels::squared_norms_workspace(tensors)};
}

Work prepare_loss_scale(const Facts& node, const Machine& machine) {
  kernels::LossScaleParams params{.rule = graph::ops::LossScaleRule(node.attrs)};
  return {
      [=, counts = node.inputs.size() > 4, stream = machine.stream()](const Addresses& a) mutable {
        if (counts) params.counter = a.variable<std::int64_t>(4);
        params.scale = a.variable<float>(0);
        params.good_steps = a.variable<std::int32_t>(1);
        params.hysteresis_left = a.variable<std::int32_t>(2);
        params.ok = a.input<bool>(3);
        kernels::update_loss_scale(stream, params);
      }};
}

Work prepare_learning_rate(const Facts& node, const Machine& machine) {
  const auto& boundaries = node.attrs.get<std::vector<std::int64_t>>("boundaries");
  const auto& values = node.attrs.get<std::vector<double>>("values");
  kernels::LearningRateParams params{.schedule = graph::ops::Schedule(node.attrs),
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
      {"cuda/cast_variable", prepare_cast_variable},
      {"cuda/learning_rate", prepare_learning_rate},
      {"cuda/loss_scale", prepare_loss_scale},
      {"cuda/moving_averages", prepare_moving_averages},
      {"cuda/squared_norms", prepare_squared_norms},
      {"cuda/update", prepare_update},
  };
}

}  // namespace halfstep::backend::cuda::plugin
