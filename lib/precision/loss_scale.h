#pragma once
// Loss scaling as variables and ops, with explicit settings where TensorFlow, Keras and PyTorch
// differ.

#include <cstdint>
#include <optional>

#include "config/precision_spec.h"
#include "graph/builder.h"

namespace halfstep::precision {

/// The effective rules, with `automatic` and `compat` resolved.
struct LossScaling {
  enum class Mode { none, fixed, dynamic };

  Mode mode = Mode::none;
  double initial = 32768;
  double growth_factor = 2;
  std::int64_t growth_steps = 2000;
  double backoff_factor = 0.5;
  double min = 1;  ///< 0: no lower bound
  double max = 0;  ///< 0: limited by float32 alone
  std::int64_t hysteresis = 1;
  bool grow_on_equal = false;  ///< Keras 3 and PyTorch compare the counter with ==
  bool guard_growth = true;    ///< Keras 3 lets the scale become infinite
  bool retry = false;
  std::optional<std::int64_t> max_consecutive_skips;
  config::StepCounter step_counter = config::StepCounter::applied;
  config::ScaleCheck check = config::ScaleCheck::unscaled;
};

/// Resolves a config: `automatic` is dynamic when `float16_compute` (policy mixed_float16, or a
/// rewrite to float16), else none; `compat` sets those of the fields below that the config may
/// leave absent.
LossScaling resolve_loss_scaling(const config::LossScaleSpec& spec, bool float16_compute);

/// The scale inside a graph.
struct ScaleVariables {
  graph::Value scale;  ///< handle, float32
  graph::Value good_steps;
  graph::Value hysteresis_left;
};

inline constexpr std::string_view k_scale_variable = "loss_scale/scale";
inline constexpr std::string_view k_good_steps_variable = "loss_scale/good_steps";
inline constexpr std::string_view k_hysteresis_variable = "loss_scale/hysteresis_left";

/// Declares the scale's variables.
ScaleVariables declare_scale(graph::Builder& b, const LossScaling& scaling);

/// Emits the update of a dynamic scale.
void update_scale(graph::Builder& b,
                  const LossScaling& scaling,
                  const ScaleVariables& variables,
                  graph::Value ok);

}  // namespace halfstep::precision
