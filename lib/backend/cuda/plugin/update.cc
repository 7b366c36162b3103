// The finite check, the loss scale, the learning rate and writing to variables.

#include "backend/cuda/kernels/update.h"

#include <algorithm>
#include <array>
#include <optional>

#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/scaling.h"
#include "backend/cuda/kernels/state.h"
#include "backend/cuda/plugin/prepare.h"
#include "backend/update_inputs.h"
#include "core/error.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cuda::plugin {
namespace {

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
  std::vector<ScalarInput<const void*>> scalars = {};
  std::optional<std::size_t> updates = {}, decay = {}, unscale = {}, ok = {};
};

/// An op like ResourceApplyAdam, or a FusedUpdate of such a rule.
UpdateLayout layout_of_one(const NodeView& node, const graph::OpDef& rule) {
  const graph::ops::UpdatePorts ports = graph::ops::update_ports(rule);
  UpdateLayout layout{.tensors = {{.gradient = ports.gradient}},
                      .slots = ports.resources - 1,
                      .scalars = scalar_inputs<const void*>(rule)};
  std::size_t next = ports.inputs;
  if (node.node.is(graph::ops::k_fused_update)) layout.unscale = next++;
  if (next < node.inputs()) layout.ok = next;
  return layout;
}

UpdateLayout layout_of_group(const NodeView& node, const graph::OpDef& rule) {
  const graph::ops::GroupedUpdatePorts ports = graph::ops::grouped_update_ports(node.attrs());
  UpdateLayout layout{.slots = ports.rule.resources - 1};
  for (std::size_t t = 0; t < ports.tensors; ++t) {
    layout.tensors.push_back({.variable = ports.handle(t, 0), .gradient = ports.gradients + t});
    if (ports.copies[t] >= 0) layout.tensors[t].copy = static_cast<std::size_t>(ports.copies[t]);
    layout.tensors[t].decayed = !ports.decayed.empty() && ports.decayed[t] != 0;
  }
  std::size_t next = ports.scalars;
  using Scalars = functions::UpdateScalars<const void*>;
  for (const auto& [scalar, input] : scalar_inputs<const void*>(rule)) {
    const bool power = scalar == &Scalars::beta1_power || scalar == &Scalars::beta2_power;
    if (power && node.attrs().get<bool>("counted")) {
      layout.updates = next++;
    } else {
      layout.scalars.push_back({scalar, next++});
    }
  }
  if (!ports.decayed.empty()) layout.decay = next++;
  if (ports.unscaled) layout.unscale = next++;
  if (ports.guarded) layout.ok = next;
  return layout;
}

PreparedKernel prepare_update(const NodeView& node, const DeviceContext& context) {
  const graph::AttrValue* fused = node.attrs().find("rule");
  const std::string& name = fused != nullptr ? std::get<std::string>(*fused) : node.node.op;
  const kernels::Update* update = kernels::update_of(name);
  require(update != nullptr, "{} is no update", name);
  const graph::OpDef& rule = *graph::op_table().find(name);
  const UpdateLayout layout = node.node.is(graph::ops::k_grouped_update)
                                  ? layout_of_group(node, rule)
                                  : layout_of_one(node, rule);
  std::vector<kernels::UpdatedTensor> tensors;
  for (const UpdateLayout::Tensor& tensor : layout.tensors) {
    const graph::TensorType& gradient = node.input(tensor.gradient);
    const Shape& variable = graph::ops::variable_type(node.producer(tensor.variable)).shape;
    tensors.push_back({.gradient_dtype = gradient.dtype, .elements = variable.elements()});
    tensors.back().decayed = tensor.decayed;
    if (variable.rank() > 0) {
      tensors.back().columns = variable.back();
      tensors.back().padded_columns = gradient.shape.back();
    }
    if (tensor.copy) tensors.back().copy_dtype = node.input(*tensor.copy).dtype;
  }
  const UpdateOptions options(node.attrs(), update->flag);
  kernels::UpdateParams params{.dtype = node.attrs().get<DType>("T"),
                               .reciprocal = node.attrs().get_or<bool>("reciprocal", false),
                               .decay_by_rate = options.weight_decay,
                               .flag = options.flag};
  return {[=, stream = context.stream()](const Args& a) mutable {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const UpdateLayout::Tensor& from = layout.tensors[t];
      tensors[t].variable = a.in[from.variable].data;
      for (std::size_t i = 0; i < layout.slots; ++i) {
        tensors[t].slots[i] = a.in[from.variable + 1 + i].data;
      }
      tensors[t].gradient = a.in[from.gradient].data;
      if (from.copy) tensors[t].copy = a.in[*from.copy].data;
    }
    params.tensors = tensors;
    for (const auto& [scalar, input] : layout.scalars) params.scalars.*scalar = a.in[input].data;
    const auto address = [&](std::optional<std::size_t> input) {
      return input ? a.in[*input].data : nullptr;
    };
    params.decay = address(layout.decay);
    params.unscale = address(layout.unscale);
    params.updates = static_cast<const std::int64_t*>(address(layout.updates));
    params.ok = static_cast<const bool*>(address(layout.ok));
    update->run(stream, params);
  }};
}

/// The 16-bit copy of a float32 variable.
PreparedKernel prepare_cast_variable(const NodeView& node, const DeviceContext& context) {
  const Shape &from = graph::ops::variable_type(node.producer(0)).shape, &to = node.output().shape;
  if (from != to) {
    kernels::CastRowsParams params{.to = node.output().dtype,
                                   .rows = from.elements(0, from.rank() - 1),
                                   .columns = from.back(),
                                   .padded = to.back()};
    return {[=, stream = context.stream()](const Args& a) mutable {
      params.x = a.in[0].as<float>();
      params.y = a.out[0].data;
      kernels::cast_rows(stream, params);
    }};
  }
  kernels::CastParams params{.from = DType::float32,
                             .to = node.output().dtype,
                             .elements = node.output().shape.elements()};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.y = a.out[0].data;
    kernels::cast(stream, params);
  }};
}

PreparedKernel prepare_assign(const NodeView& node, const DeviceContext& context) {
  const graph::TensorType& value = node.input(1);
  kernels::AssignParams params{.bytes = static_cast<std::size_t>(value.shape.elements()) *
                                        size_bytes(value.dtype)};
  return {[=, guard = node.inputs() > 2, stream = context.stream()](const Args& a) mutable {
    params.variable = a.in[0].data;
    params.value = a.in[1].data;
    params.ok = guard ? a.in[2].as<bool>() : nullptr;
    kernels::assign(stream, params);
  }};
}

PreparedKernel prepare_assign_add(const NodeView& node, const DeviceContext& context) {
  kernels::AssignAddParams params{.dtype = node.input(1).dtype,
                                  .elements = node.input(1).shape.elements()};
  return {[=, guard = node.inputs() > 2, stream = context.stream()](const Args& a) mutable {
    params.variable = a.in[0].data;
    params.value = a.in[1].data;
    params.ok = guard ? a.in[2].as<bool>() : nullptr;
    kernels::assign_add(stream, params);
  }};
}

PreparedKernel prepare_moving_averages(const NodeView& node, const DeviceContext& context) {
  const auto& momentum = node.attrs().get<std::vector<double>>("momentum");
  const auto& share = node.attrs().get<std::vector<double>>("share");
  static_assert(kernels::MovingAveragesParams::k_max_tensors == graph::ops::k_max_averages);
  kernels::MovingAveragesParams params{.count = momentum.size()};
  for (std::size_t i = 0; i < params.count; ++i) {
    params.tensors.at(i) = {.elements = node.input(params.count + i).shape.elements(),
                            .momentum = static_cast<float>(momentum[i]),
                            .share = static_cast<float>(share[i])};
  }
  return {[=, guard = node.attrs().get<bool>("guarded"), stream = context.stream()](
              const Args& a) mutable {
    for (std::size_t i = 0; i < params.count; ++i) {
      params.tensors.at(i).average = a.in[i].as<float>();
      params.tensors.at(i).value = a.in[params.count + i].as<float>();
    }
    params.ok = guard ? a.in[2 * params.count].as<bool>() : nullptr;
    kernels::moving_averages(stream, params);
  }};
}

PreparedKernel prepare_all_finite(const NodeView& node, const DeviceContext& context) {
  const bool unscaled = node.attrs().get<bool>("unscaled");
  const bool reciprocal = node.attrs().get<bool>("reciprocal");
  std::vector<kernels::CheckedTensor> tensors;
  for (std::size_t i = 0; i + (unscaled ? 1 : 0) < node.inputs(); ++i) {
    const graph::TensorType& type = node.input(i);
    tensors.push_back({.dtype = type.dtype, .elements = type.shape.elements()});
  }
  return {[=, &context](const Args& a) mutable {
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].x = a.in[i].data;
    kernels::all_finite(context.stream(),
                        {.tensors = tensors,
                         .unscale = unscaled ? a.in[tensors.size()].as<float>() : nullptr,
                         .reciprocal = reciprocal,
                         .ok = a.out[0].as<bool>(),
                         .tickets = context.tickets});
  }};
}

PreparedKernel prepare_squared_norms(const NodeView& node, const DeviceContext& context) {
  std::vector<kernels::SquaredTensor> tensors;
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    const graph::TensorType& type = node.input(i);
    tensors.push_back({{.dtype = type.dtype, .elements = type.shape.elements()}});
  }
  return {[=, &context, unscaled = node.attrs().get<bool>("unscaled")](const Args& a) mutable {
            for (std::size_t i = 0; i < tensors.size(); ++i) {
              tensors[i].x = a.in[i].data;
              tensors[i].norm = static_cast<float*>(a.out[i].data);
            }
            kernels::squared_norms(
                context.stream(),
                {.tensors = tensors,
                 .unscale = unscaled ? a.in[tensors.size()].as<float>() : nullptr,
                 .workspace = a.workspace,
                 .tickets = context.tickets});
          },
          kernels::squared_norms_workspace(tensors)};
}

PreparedKernel prepare_loss_scale(const NodeView& node, const DeviceContext& context) {
  kernels::LossScaleParams params{.rule = graph::ops::LossScaleRule(node.attrs())};
  return {[=, counts = node.inputs() > 4, stream = context.stream()](const Args& a) mutable {
    if (counts) params.counter = a.in[4].as<std::int64_t>();
    params.scale = a.in[0].as<float>();
    params.good_steps = a.in[1].as<std::int32_t>();
    params.hysteresis_left = a.in[2].as<std::int32_t>();
    params.ok = a.in[3].as<bool>();
    kernels::update_loss_scale(stream, params);
  }};
}

PreparedKernel prepare_learning_rate(const NodeView& node, const DeviceContext& context) {
  const auto& boundaries = node.attrs().get<std::vector<std::int64_t>>("boundaries");
  const auto& values = node.attrs().get<std::vector<double>>("values");
  kernels::LearningRateParams params{.schedule = graph::ops::Schedule(node.attrs()),
                                     .pieces = values.size()};
  require(values.size() <= params.values.size() && boundaries.size() <= params.boundaries.size(),
          "{} pieces of a learning rate",
          values.size());
  std::copy(boundaries.begin(), boundaries.end(), params.boundaries.begin());
  std::copy(values.begin(), values.end(), params.values.begin());
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.step = a.in[0].as<std::int64_t>();
    params.rate = a.out[0].as<float>();
    kernels::learning_rate(stream, params);
  }};
}

}  // namespace

std::vector<Implementation> update_kernels() {
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
