#include <algorithm>

#include "config/printer.h"
#include "config/warning_codes.h"
#include "graph/op_handles.h"
#include "nn/metric.h"
#include "nn/optim/schedule.h"
#include "nn/step_graph.h"
#include "precision/unscaling.h"

namespace halfstep::nn {
namespace {

/// Whether the run computes in float16, which makes a loss scale the default.
bool computes_float16(const config::PrecisionSpec& precision) {
  if (precision.rewrite == config::Rewrite::automatic) return precision.target == DType::float16;
  return precision.policy == "mixed_float16";
}

void warn(std::vector<config::Warning>& warnings,
          std::string_view code,
          Where where,
          std::string message) {
  warnings.push_back(config::warning(code, std::move(where), std::move(message)));
}

/// Whether any layer may compute in float16.
bool uses_float16(const config::PrecisionSpec& precision, const Model& model) {
  if (precision.rewrite == config::Rewrite::automatic) return precision.target != DType::bfloat16;
  return std::any_of(model.nodes.begin(), model.nodes.end(), [](const ModelNode& node) {
    return node.precision.policy.compute == DType::float16;
  });
}

/// A loss scale preserves small float16 gradients; the other dtypes have float32's exponent
/// range.
void warn_of_idle_scale(const config::RunSpec& spec, Blueprint& blueprint) {
  using Mode = precision::LossScaling::Mode;
  if (uses_float16(spec.precision, blueprint.model)) return;
  config::LossScaleSpec given = spec.precision.loss_scale;
  if (given.mode == config::LossScaleMode::none) return;
  const bool automatic = given.mode == config::LossScaleMode::automatic;
  given.mode = config::LossScaleMode::automatic;
  const config::Node usual = config::to_node(config::LossScaleSpec());
  if (automatic && config::same(config::to_node(given), usual)) return;
  std::string message =
      "has no use here: nothing computes in float16, and other dtypes have the "
      "exponent range of float32";
  switch (blueprint.loss_scaling.mode) {
    case Mode::none:
      message += "; with mode: auto it is left out";
      break;
    case Mode::fixed:
      message += "; it costs a multiplication of each gradient";
      break;
    case Mode::dynamic:
      message +=
          "; it costs a multiplication of each gradient, and a step whose gradients are not "
          "finite is skipped, whatever precision.on_nonfinite says";
      break;
  }
  warn(blueprint.model.warnings,
       config::k_idle_loss_scale,
       spec.where("precision.loss_scale"),
       std::move(message));
}

/// Adds the properties and warnings of the output. Shapes that do not fit go to `diagnostics`.
void look_at_output(Blueprint& blueprint, Diagnostics& diagnostics) {
  try {
    blueprint.output = model_output(blueprint.model);
  } catch (const UserError& error) {
    for (const Problem& p : error.problems()) diagnostics.error(p.where, p.message, p.hint);
    return;
  }
  const Model& model = blueprint.model;
  const ModelNode& last = model.nodes.at(static_cast<std::size_t>(model.outputs.at(0)));
  for (config::Warning& warning :
       output_warnings(blueprint.output, *blueprint.loss, last.name, blueprint.loss_where)) {
    blueprint.model.warnings.push_back(std::move(warning));
  }
}

}  // namespace

Blueprint read_blueprint(const config::RunSpec& spec, Diagnostics& diagnostics) {
  Blueprint blueprint;
  blueprint.model = read_model(spec, diagnostics);
  if (blueprint.model.inputs.size() > 1) {
    diagnostics.error(
        spec.where("model.inputs"),
        fmt::format("a model trains on one input, got {}", blueprint.model.inputs.size()));
  }
  if (blueprint.model.outputs.size() > 1) {
    diagnostics.error(
        spec.where("model.outputs"),
        fmt::format("a model trains on one output, got {}", blueprint.model.outputs.size()));
  }
  blueprint.input_where = spec.where(spec.model.inputs.empty() ? "model.input" : "model.inputs");
  blueprint.loss = make_loss(spec.loss, diagnostics);
  blueprint.loss_where = spec.where("loss");
  blueprint.optimizer = make_optimizer(spec.optimizer, diagnostics);
  if (blueprint.optimizer.def != nullptr) {
    blueprint.learning_rate = read_schedule(blueprint.optimizer.spec.learning_rate,
                                            blueprint.optimizer.def->default_learning_rate,
                                            diagnostics);
  }
  check_metrics(spec, diagnostics);
  blueprint.loss_scaling =
      precision::resolve_loss_scaling(spec.precision.loss_scale, computes_float16(spec.precision));
  blueprint.on_nonfinite = spec.precision.on_nonfinite;
  blueprint.grad_dtype = spec.precision.grad_dtype;
  blueprint.metrics = spec.metrics;
  blueprint.input_scale = spec.data.scale;
  blueprint.seed = static_cast<std::uint64_t>(spec.seed);
  if (!diagnostics.empty()) return blueprint;
  warn_of_idle_scale(spec, blueprint);
  look_at_output(blueprint, diagnostics);
  return blueprint;
}

std::vector<config::Warning> precision_warnings(const Blueprint& blueprint,
                                                const graph::Graph& graph) {
  std::vector<config::Warning> warnings = blueprint.model.warnings;
  const graph::Node& output = graph.node(graph.fetch("outputs").node);
  const ModelNode& last =
      blueprint.model.nodes.at(static_cast<std::size_t>(blueprint.model.outputs.at(0)));
  // The loss casts to float32: a final Cast from a 16-bit type means a 16-bit output.
  if (output.is(graph::ops::k_cast) && is_half(graph.type(output.inputs[0]).dtype)) {
    warn(warnings,
         config::k_half_output,
         last.where,
         fmt::format("the model's output '{}' is {}; give its last layer dtype: float32",
                     last.name,
                     name(graph.type(output.inputs[0]).dtype)));
  }
  for (const ModelNode& node : blueprint.model.nodes) {
    const precision::Policy& policy = node.precision.policy;
    if (!policy.mixed() && is_half(policy.compute)) {
      warn(
          warnings,
          config::k_half_weights,
          node.where,
          fmt::format("layer '{}' stores its weights in {}: small updates are lost and there is no "
                      "master copy; mixed_{} keeps one",
                      node.name,
                      name(policy.variable),
                      name(policy.compute)));
      break;
    }
  }
  const bool own_weights =
      warnings.end() !=
      std::find_if(warnings.begin(), warnings.end(), [](const config::Warning& w) {
        return w.code == config::k_half_weights;
      });
  std::optional<config::Warning> unscaling = precision::unscaling_warning(
      graph,
      blueprint.loss_scaling.initial,
      own_weights ? "a mixed policy unscales in float32"
                  : "precision.rewrite_rules: 2.19 unscales in float32");
  if (unscaling) warnings.push_back(std::move(*unscaling));
  return warnings;
}

}  // namespace halfstep::nn
