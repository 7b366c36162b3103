#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/dataset.h"
#include "backend/cuda/kernels/random.h"
#include "backend/cuda/kernels/scaling.h"
#include "backend/cuda/kernels/state.h"
#include "backend/cuda/kernels/update.h"
#include "cuda_device/kernel_rows.h"
#include "graph/op_def.h"
#include "graph/ops/fused_update.h"

namespace halfstep::testing {
namespace {

namespace own = backend::cuda::kernels;
using backend::Args;
using backend::Capabilities;
using backend::Kernel;
using backend::NodeView;
using backend::Prepared;

Prepared prepare_update(const NodeView& node, const Capabilities&) {
  const graph::Attrs& attrs = node.attrs();
  own::UpdateParams p{.update = own::update_of(node.node.op).value(),
                      .dtype = attrs.get<DType>("T"),
                      .decay_by_rate = attrs.get_or<double>("weight_decay", 0),
                      .nesterov = attrs.get_or<bool>("use_nesterov", false),
                      .update_slots = attrs.get_or<bool>("update_slots", true)};
  std::vector<std::string_view> ports;
  for (const auto& port : node.node.def->inputs) ports.push_back(port.name);
  return launch_on_device([p, ports](const Args& a) mutable {
    own::UpdatedTensor tensor{.variable = a.in[0].data};
    std::size_t slot = 0;
    for (std::size_t i = 1; i < a.in.size(); ++i) {
      void* data = a.in[i].data;
      const std::string_view port = ports[i];
      if (port == "grad" || port == "delta") {
        tensor.gradient = data;
        tensor.gradient_dtype = a.in[i].dtype;
        tensor.elements = a.in[i].elements();
      } else if (port == "lr" || port == "alpha") {
        p.rate = data;
      } else if (port == "rho") {
        p.rho = data;
      } else if (port == "momentum") {
        p.momentum = data;
      } else if (port == "beta1_power") {
        p.beta1_power = data;
      } else if (port == "beta2_power") {
        p.beta2_power = data;
      } else if (port == "beta1") {
        p.beta1 = data;
      } else if (port == "beta2") {
        p.beta2 = data;
      } else if (port == "epsilon") {
        p.epsilon = data;
      } else if (port == "weight_decay") {
        p.weight_decay = data;
      } else if (port == "ok") {
        p.ok = a.in[i].as<bool>();
      } else {
        tensor.slots.at(slot++) = data;
      }
    }
    p.tensors = {&tensor, 1};
    own::update(device().stream(), p);
  });
}

/// A GroupedUpdate by ResourceApplyKerasRMSProp, Adam or AdamW, the rules of its cases.
Prepared prepare_grouped_update(const NodeView& node, const Capabilities&) {
  const graph::ops::GroupedUpdatePorts ports = graph::ops::grouped_update_ports(node.attrs());
  own::UpdateParams p{.update = *own::update_of(node.attrs().get<std::string>("rule")),
                      .dtype = DType::float32,
                      .decay_by_rate = node.attrs().get_or<double>("weight_decay", 0)};
  return launch_on_device([p, ports](const Args& a) mutable {
    std::vector<own::UpdatedTensor> tensors;
    for (std::size_t t = 0; t < ports.tensors; ++t) {
      const TensorView& gradient = a.in[ports.gradients + t];
      const TensorView& variable = a.in[ports.handle(t, 0)];
      tensors.push_back({.variable = variable.data,
                         .slots = {},
                         .gradient = gradient.data,
                         .gradient_dtype = gradient.dtype,
                         .elements = variable.elements(),
                         .columns = variable.shape.back(),
                         .padded_columns = gradient.shape.back(),
                         .decayed = !ports.decayed.empty() && ports.decayed[t] != 0});
      for (std::size_t i = 1; i < ports.rule.resources; ++i) {
        tensors.back().slots.at(i - 1) = a.in[ports.handle(t, i)].data;
      }
    }
    p.tensors = tensors;
    std::size_t next = ports.scalars;
    if (p.update == own::Update::keras_rms_prop) {
      p.rate = a.in[next++].data;
      p.rho = a.in[next++].data;
    } else {
      p.updates = a.in[next].as<std::int64_t>();
      next += 2;
      p.rate = a.in[next++].data;
      if (p.update == own::Update::adam_w) p.weight_decay = a.in[next++].data;
      p.beta1 = a.in[next++].data;
      p.beta2 = a.in[next++].data;
    }
    p.epsilon = a.in[next].data;
    p.decay = ports.decayed.empty() ? nullptr : a.in[ports.decay()].data;
    p.unscale = ports.unscaled ? a.in[ports.unscale()].data : nullptr;
    p.ok = ports.guarded ? a.in.back().as<bool>() : nullptr;
    own::update(device().stream(), p);
  });
}

Prepared prepare_cast_variable(const NodeView& node, const Capabilities&) {
  own::CastRowsParams p{.to = node.output().dtype, .padded = node.output().shape.back()};
  return launch_on_device([p](const Args& a) mutable {
    p.x = a.in[0].as<float>();
    p.y = a.out[0].data;
    p.columns = a.in[0].shape.back();
    p.rows = a.in[0].elements() / p.columns;
    own::cast_rows(device().stream(), p);
  });
}

Prepared prepare_uniform(const NodeView& node, const Capabilities&) {
  own::UniformParams p{
      .seed = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("seed")),
      .stream = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("stream"))};
  const std::int64_t first = node.attrs().get<std::int64_t>("first");
  return launch_on_device([p, first](const Args& a) mutable {
    p.ordinal = a.in[0].as<std::int64_t>();
    p.y = a.out[0].as<float>();
    p.elements = a.out[0].elements();
    p.first = first;
    own::uniform(device().stream(), p);
  });
}

Prepared prepare_all_finite(const NodeView& node, const Capabilities&) {
  return launch_on_device([unscaled = node.attrs().get<bool>("unscaled"),
                           reciprocal = node.attrs().get<bool>("reciprocal")](const Args& a) {
    std::vector<own::CheckedTensor> tensors;
    const auto checked = a.in.first(a.in.size() - (unscaled ? 1 : 0));
    for (const TensorView& x : checked) tensors.push_back({x.dtype, x.data, x.elements()});
    own::all_finite(device().stream(),
                    {.tensors = tensors,
                     .unscale = unscaled ? a.in.back().as<float>() : nullptr,
                     .reciprocal = reciprocal,
                     .ok = a.out[0].as<bool>(),
                     .tickets = tickets()});
  });
}

Prepared prepare_squared_norms(const NodeView& node, const Capabilities&) {
  std::vector<own::SquaredTensor> tensors;
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    const graph::TensorType& type = node.input(i);
    tensors.push_back({{.dtype = type.dtype, .elements = type.shape.elements()}});
  }
  return launch_on_device(
      [tensors, unscaled = node.attrs().get<bool>("unscaled")](const Args& a) mutable {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          tensors[i].x = a.in[i].data;
          tensors[i].norm = a.out[i].as<float>();
        }
        own::squared_norms(device().stream(),
                           {.tensors = tensors,
                            .unscale = unscaled ? a.in.back().as<float>() : nullptr,
                            .workspace = a.workspace,
                            .tickets = tickets()});
      },
      own::squared_norms_workspace(tensors));
}

Prepared prepare_loss_scale(const NodeView& node, const Capabilities&) {
  const graph::Attrs& attrs = node.attrs();
  const auto real = [&](std::string_view name) {
    return static_cast<float>(attrs.get<double>(name));
  };
  own::LossScaleParams p{
      .growth_factor = real("growth_factor"),
      .backoff_factor = real("backoff_factor"),
      .min_scale = real("min_scale"),
      .max_scale = real("max_scale"),
      .growth_steps = attrs.get<std::int64_t>("growth_steps"),
      .hysteresis = static_cast<std::int32_t>(attrs.get<std::int64_t>("hysteresis")),
      .grow_on_equal = attrs.get<bool>("grow_on_equal"),
      .guard = attrs.get<bool>("guard"),
      .counts_all = attrs.get<bool>("counts_all")};
  return launch_on_device([p](const Args& a) mutable {
    if (a.in.size() > 4) p.counter = a.in[4].as<std::int64_t>();
    p.scale = a.in[0].as<float>();
    p.good_steps = a.in[1].as<std::int32_t>();
    p.hysteresis_left = a.in[2].as<std::int32_t>();
    p.ok = a.in[3].as<bool>();
    own::update_loss_scale(device().stream(), p);
  });
}

own::Schedule schedule_named(std::string_view kind) {
  if (kind == "constant") return own::Schedule::constant;
  if (kind == "piecewise_constant") return own::Schedule::piecewise_constant;
  if (kind == "exponential_decay") return own::Schedule::exponential_decay;
  if (kind == "cosine_decay") return own::Schedule::cosine_decay;
  if (kind == "cosine_decay_restarts") return own::Schedule::cosine_decay_restarts;
  if (kind == "inverse_time_decay") return own::Schedule::inverse_time_decay;
  return own::Schedule::polynomial_decay;
}

Prepared prepare_learning_rate(const NodeView& node, const Capabilities&) {
  const graph::Attrs& attrs = node.attrs();
  own::LearningRateParams p{.schedule = schedule_named(attrs.get<std::string>("kind")),
                            .base = attrs.get<double>("base"),
                            .decay_rate = attrs.get<double>("decay_rate"),
                            .alpha = attrs.get<double>("alpha"),
                            .t_mul = attrs.get<double>("t_mul"),
                            .m_mul = attrs.get<double>("m_mul"),
                            .end = attrs.get<double>("end"),
                            .power = attrs.get<double>("power"),
                            .warmup_start = attrs.get<double>("warmup_start"),
                            .warmup_target = attrs.get<double>("warmup_target"),
                            .decay_steps = attrs.get<std::int64_t>("decay_steps"),
                            .warmup_steps = attrs.get<std::int64_t>("warmup_steps"),
                            .staircase = attrs.get<bool>("staircase"),
                            .cycle = attrs.get<bool>("cycle")};
  const auto& values = attrs.get<std::vector<double>>("values");
  const auto& boundaries = attrs.get<std::vector<std::int64_t>>("boundaries");
  p.pieces = values.size();
  std::copy(values.begin(), values.end(), p.values.begin());
  std::copy(boundaries.begin(), boundaries.end(), p.boundaries.begin());
  return launch_on_device([p](const Args& a) mutable {
    p.step = a.in[0].as<std::int64_t>();
    p.rate = a.out[0].as<float>();
    own::learning_rate(device().stream(), p);
  });
}

const bool* ok_of(const Args& a) { return a.in.size() < 3 ? nullptr : a.in[2].as<bool>(); }

Prepared prepare_assign(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::assign(device().stream(),
                {.variable = a.in[0].data,
                 .value = a.in[1].data,
                 .bytes = a.in[1].bytes(),
                 .ok = ok_of(a)});
  });
}

Prepared prepare_assign_add(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::assign_add(device().stream(),
                    {.dtype = a.in[1].dtype,
                     .variable = a.in[0].data,
                     .value = a.in[1].data,
                     .elements = a.in[1].elements(),
                     .ok = ok_of(a)});
  });
}

Prepared prepare_gather_batch(const NodeView& node, const Capabilities&) {
  own::GatherBatchParams p{.element_bytes = size_bytes(node.output().dtype),
                           .cycle = node.attrs().get<std::int64_t>("steps"),
                           .count = node.attrs().get<std::int64_t>("batch")};
  return launch_on_device([p](const Args& a) mutable {
    p.row_elements = a.in[0].elements() / a.in[0].shape[0];
    p.rows = a.in[0].data;
    p.order = a.in[1].as<std::int32_t>();
    p.ordinal = a.in[2].as<std::int64_t>();
    p.batch = a.out[0].data;
    own::gather_batch(device().stream(), p);
  });
}

Prepared prepare_next_batch(const NodeView& node, const Capabilities&) {
  const auto scales = node.attrs().get<std::vector<double>>("scales");
  own::NextBatchParams p{.cycle = node.attrs().get<std::int64_t>("steps"),
                         .count = node.attrs().get<std::int64_t>("batch"),
                         .tensors = node.outputs(),
                         .tickets = tickets()};
  return launch_on_device([p, scales](const Args& a) mutable {
    p.ordinal = a.in[0].as<std::int64_t>();
    p.order = a.in[1].as<std::int32_t>();
    for (std::size_t i = 0; i < p.tensors; ++i) {
      const TensorView& rows = a.in[i + 2];
      const std::size_t row_bytes = rows.bytes() / static_cast<std::size_t>(rows.shape[0]);
      p.tensor.at(i) = {rows.data, a.out[i].data, row_bytes};
      if (a.out[i].dtype == rows.dtype) continue;
      p.tensor.at(i).to = a.out[i].dtype;
      p.tensor.at(i).scale = static_cast<float>(scales.at(i));
    }
    own::next_batch(device().stream(), p);
  });
}

/// in: the log, the ordinal, the values.
own::LogScalarsParams log_of(std::span<const TensorView> in, std::int64_t slots) {
  own::LogScalarsParams p{.log = in[0].data,
                          .ordinal = in[1].as<std::int64_t>(),
                          .slots = slots,
                          .count = in.size() - 2};
  for (std::size_t i = 0; i < p.count; ++i) {
    p.values.at(i) = in[i + 2].data;
    p.bytes.at(i) = static_cast<std::uint8_t>(in[i + 2].bytes());
  }
  return p;
}

Prepared prepare_keep_state(const NodeView& node, const Capabilities&) {
  return launch_on_device([slots = node.attrs().get<std::int64_t>("slots")](const Args& a) {
    own::keep_state(device().stream(),
                    {.kept = a.in[0].data,
                     .state = a.in[2].data,
                     .bytes = a.in[2].bytes(),
                     .taken = a.in[1].as<bool>(),
                     .ok = a.in[3].as<bool>(),
                     .log = log_of(a.in.subspan(4), slots),
                     .tickets = tickets()});
  });
}

Prepared prepare_log_scalars(const NodeView& node, const Capabilities&) {
  return launch_on_device([slots = node.attrs().get<std::int64_t>("slots")](const Args& a) {
    own::log_scalars(device().stream(), log_of(a.in, slots));
  });
}

Prepared prepare_moving_averages(const NodeView& node, const Capabilities&) {
  const auto momentum = node.attrs().get<std::vector<double>>("momentum");
  const auto share = node.attrs().get<std::vector<double>>("share");
  return launch_on_device([=](const Args& a) {
    own::MovingAveragesParams p{.count = momentum.size()};
    for (std::size_t i = 0; i < p.count; ++i) {
      p.tensors.at(i) = {a.in[i].as<float>(),
                         a.in[p.count + i].as<float>(),
                         a.in[i].elements(),
                         static_cast<float>(momentum[i]),
                         static_cast<float>(share[i])};
    }
    if (a.in.size() > 2 * p.count) p.ok = a.in[2 * p.count].as<bool>();
    own::moving_averages(device().stream(), p);
  });
}

}  // namespace

std::vector<Kernel> training_rows() {
  std::vector<Kernel> rows{
      {"AllFinite", "cuda/all_finite", nullptr, prepare_all_finite},
      {"AssignAddVariableOp", "cuda/assign_add", nullptr, prepare_assign_add},
      {"AssignVariableOp", "cuda/assign", nullptr, prepare_assign},
      {"CastVariable", "cuda/cast_variable", nullptr, prepare_cast_variable},
      {"GroupedUpdate", "cuda/update", nullptr, prepare_grouped_update},
      {"GatherBatch", "cuda/gather_batch", nullptr, prepare_gather_batch},
      {"KeepState", "cuda/keep_state", nullptr, prepare_keep_state},
      {"MovingAverages", "cuda/moving_averages", nullptr, prepare_moving_averages},
      {"NextBatch", "cuda/next_batch", nullptr, prepare_next_batch},
      {"LogScalars", "cuda/log_scalars", nullptr, prepare_log_scalars},
      {"LearningRate", "cuda/learning_rate", nullptr, prepare_learning_rate},
      {"RandomUniformFromOrdinal", "cuda/uniform", nullptr, prepare_uniform},
      {"SquaredNorms", "cuda/squared_norms", nullptr, prepare_squared_norms},
      {"UpdateLossScale", "cuda/update_loss_scale", nullptr, prepare_loss_scale},
  };
  for (std::string_view op : {"ResourceApplyAdagradV2",
                              "ResourceApplyAdam",
                              "ResourceApplyAdamW",
                              "ResourceApplyCenteredRMSProp",
                              "ResourceApplyGradientDescent",
                              "ResourceApplyKerasMomentum",
                              "ResourceApplyKerasRMSProp",
                              "ResourceApplyRMSProp"}) {
    rows.push_back({op, "cuda/update", nullptr, prepare_update});
  }
  return rows;
}

}  // namespace halfstep::testing
