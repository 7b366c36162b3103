#include "precision/loss_scale.h"

#include <array>

namespace halfstep::precision {
namespace {

/// The settings in which the systems differ. Source: TensorFlow loss_scale.py and
/// loss_scale_optimizer.py, Keras 3 loss_scale_optimizer.py, PyTorch grad_scaler.py.
struct CompatDefaults {
  config::Compat compat;
  double min;
  bool grow_on_equal;
  bool guard_growth;
  config::StepCounter step_counter;
  config::ScaleCheck check;
};

constexpr std::array k_compat{
    CompatDefaults{config::Compat::tf1,
                   1,
                   false,
                   true,
                   config::StepCounter::applied,
                   config::ScaleCheck::unscaled},
    CompatDefaults{config::Compat::tf2,
                   1,
                   false,
                   true,
                   config::StepCounter::attempted,
                   config::ScaleCheck::unscaled},
    CompatDefaults{config::Compat::keras3,
                   0,
                   true,
                   false,
                   config::StepCounter::applied,
                   config::ScaleCheck::scaled},
    CompatDefaults{config::Compat::torch,
                   0,
                   true,
                   true,
                   config::StepCounter::applied,
                   config::ScaleCheck::scaled},
};

}  // namespace

LossScaling resolve_loss_scaling(const config::LossScaleSpec& spec, bool float16_compute) {
  LossScaling s;
  switch (spec.mode) {
    case config::LossScaleMode::automatic:
      s.mode = float16_compute ? LossScaling::Mode::dynamic : LossScaling::Mode::none;
      break;
    case config::LossScaleMode::none:
      break;
    case config::LossScaleMode::fixed:
      s.mode = LossScaling::Mode::fixed;
      break;
    case config::LossScaleMode::dynamic:
      s.mode = LossScaling::Mode::dynamic;
      break;
  }
  s.initial = config::initial_scale(spec);
  if (spec.compat) {
    for (const CompatDefaults& row : k_compat) {
      if (row.compat != *spec.compat) continue;
      s.min = row.min;
      s.grow_on_equal = row.grow_on_equal;
      s.guard_growth = row.guard_growth;
      s.step_counter = row.step_counter;
      s.check = row.check;
    }
  }
  s.growth_factor = spec.growth_factor;
  s.growth_steps = spec.growth_steps;
  s.backoff_factor = spec.backoff_factor;
  s.min = spec.min.value_or(s.min);
  s.max = spec.max.value_or(0);
  s.hysteresis = spec.hysteresis;
  s.retry = spec.on_overflow == config::OnOverflow::retry;
  s.max_consecutive_skips = spec.max_consecutive_skips;
  s.step_counter = spec.step_counter.value_or(s.step_counter);
  s.check = spec.check.value_or(s.check);
  return s;
}

ScaleVariables declare_scale(graph::Builder& b, const LossScaling& scaling) {
  const auto declare = [&](std::string_view name, DType dtype, double initial) {
    return b.variable({std::string(name),
                       {dtype, {}},
                       graph::Role::loss_scale,
                       false,
                       {graph::Initializer::Kind::constant, initial},
                       ""});
  };
  ScaleVariables v;
  v.scale = declare(k_scale_variable, DType::float32, scaling.initial);
  if (scaling.mode != LossScaling::Mode::dynamic) return v;
  v.good_steps = declare(k_good_steps_variable, DType::int32, 0);
  v.hysteresis_left =
      declare(k_hysteresis_variable, DType::int32, static_cast<double>(scaling.hysteresis));
  return v;
}

void update_scale(graph::Builder& b,
                  const LossScaling& scaling,
                  const ScaleVariables& variables,
                  graph::Value ok) {
  b.add_node("UpdateLossScale",
             {variables.scale, variables.good_steps, variables.hysteresis_left, ok},
             {{"growth_factor", scaling.growth_factor},
              {"backoff_factor", scaling.backoff_factor},
              {"growth_steps", scaling.growth_steps},
              {"min_scale", scaling.min},
              {"max_scale", scaling.max},
              {"hysteresis", scaling.hysteresis},
              {"grow_on_equal", scaling.grow_on_equal},
              {"guard", scaling.guard_growth}});
}

}  // namespace halfstep::precision
