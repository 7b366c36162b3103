#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "config/printer.h"
#include "config/warning_codes.h"
#include "graph/op_handles.h"
#include "nn/class_weights.h"
#include "nn/metric.h"
#include "nn/mixup.h"
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

/// Whether any value is float16; the casts of a rewrite that emulates float16 are in the graph.
bool uses_float16(const graph::Graph& graph) {
  for (int id = 0; id < graph.size(); ++id) {
    const std::vector<graph::TensorType>& outputs = graph.node(id).outputs;
    if (std::ranges::any_of(
            outputs, [](const graph::TensorType& type) { return type.dtype == DType::float16; })) {
      return true;
    }
  }
  return false;
}

/// A loss scale preserves small float16 gradients; the other dtypes have float32's exponent
/// range.
void warn_of_idle_scale(const config::RunSpec& spec,
                        const StepSpec& step,
                        const graph::Graph& graph,
                        std::vector<config::Warning>& warnings) {
  using ScalingMode = precision::LossScaling::Mode;
  if (uses_float16(graph)) return;
  config::LossScaleSpec scale_spec = spec.precision.loss_scale;
  if (scale_spec.mode == config::LossScaleMode::none) return;
  const bool automatic = scale_spec.mode == config::LossScaleMode::automatic;
  scale_spec.mode = config::LossScaleMode::automatic;
  const config::Node usual = config::to_node(config::LossScaleSpec());
  if (automatic && config::same(config::to_node(scale_spec), usual)) return;
  std::string message =
      "has no effect: nothing computes in float16, and other dtypes have the exponent range of "
      "float32";
  switch (step.loss_scaling.mode) {
    case ScalingMode::none:
      message += "; mode: auto disables it";
      break;
    case ScalingMode::fixed:
      message += "; it costs a multiplication of each gradient";
      break;
    case ScalingMode::dynamic:
      message +=
          "; it costs a multiplication of each gradient, and a step whose gradients are not finite "
          "is skipped, whatever precision.on_nonfinite says";
      break;
  }
  warn(warnings, config::k_idle_loss_scale, spec.where("precision.loss_scale"), std::move(message));
}

const ModelNode& last_node(const Model& model, std::size_t output) {
  return model.nodes.at(static_cast<std::size_t>(model.outputs.at(output).node));
}

/// Class names of an output without classes, and more of them than it has, go to `diagnostics`.
void check_class_names(const config::RunSpec& spec,
                       const TrainedOutput& output,
                       std::string_view name,
                       Diagnostics& diagnostics) {
  if (output.class_names.empty()) return;
  std::string path = "data.class_names";
  if (!output.key.empty()) path = config::key_path(path, name);
  const std::optional<std::int64_t> classes = output.classes();
  if (!classes || (!output.key.empty() && output.has_values())) {
    diagnostics.error(spec.where(path),
                      fmt::format("{}names classes, but the targets of its loss are real values",
                                  output.in_message()));
  } else if (std::ssize(output.class_names) > *classes) {
    diagnostics.error(spec.where(path),
                      fmt::format("{}has {} names, but the model has {} classes",
                                  output.in_message(),
                                  output.class_names.size(),
                                  *classes));
  }
}

/// Warns of inputs whose values no output depends on.
void warn_of_unused_inputs(StepSpec& step) {
  const Model& model = step.model;
  const auto position = std::ranges::find(model.nodes, "position_embedding", &ModelNode::type);
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    if (std::ranges::any_of(step.outputs, [&](const auto& o) { return o.form.reads[i]; })) continue;
    std::string message =
        fmt::format("no output depends on the values of the input '{}'", model.inputs[i].name);
    const bool shape_only = position != model.nodes.end();
    if (shape_only) {
      message += fmt::format(
          ": '{0}' takes only the shape of its input; in model.nodes a layer {{type: add, from: "
          "[x, {0}]}} adds its rows to its input x",
          position->name);
    }
    warn(step.model.warnings,
         config::k_unread_input,
         shape_only ? position->where : step.input_where,
         std::move(message));
  }
}

/// Warns of embeddings that take unknown tokens of a text for padding.
void warn_of_masked_tokens(const config::RunSpec& spec, StepSpec& step) {
  const bool windows = spec.data.format == config::DataFormat::text;
  if (!windows || !spec.data.text || spec.data.text->tokens == config::TextTokens::byte) return;
  for (const ModelNode& node : step.model.nodes) {
    if (!node.layer->masks_zero()) continue;
    warn(step.model.warnings,
         config::k_masked_tokens,
         node.where,
         fmt::format("layer '{}' has mask_zero, but windows of a text have no padding: token 0 is "
                     "<unknown>, and loss and layers would skip it",
                     node.name));
  }
}

/// Adds the properties and warnings of the outputs. Shapes that do not fit go to `diagnostics`.
void look_at_outputs(const config::RunSpec& spec, StepSpec& step, Diagnostics& diagnostics) {
  try {
    std::vector<ModelOutput> forms = model_outputs(step.model);
    for (std::size_t i = 0; i < forms.size(); ++i) {
      TrainedOutput& output = step.outputs[i];
      output.form = std::move(forms[i]);
      if (!output.has_loss) output.loss = make_unscored(output.form);
      if (output.loss->ignored_class()) output.form.masked = true;
      const bool constant = output.form.activation == "Softmax" && output.form.shape.back() == 1;
      if (constant && output.loss->takes_probabilities() && output.has_loss) {
        diagnostics.error(output.loss_where,
                          output.in_message() +
                              "gets a softmax over one unit, which is 1 whatever the weights are",
                          "activation: sigmoid gives the probability of one event");
      }
    }
  } catch (const UserError& error) {
    for (const Problem& p : error.problems()) diagnostics.error(p.where, p.message, p.hint);
    return;
  }
  warn_of_unused_inputs(step);
  warn_of_masked_tokens(spec, step);
  check_metrics_fit(spec, step.outputs, diagnostics);
  step.class_weights = read_class_weights(spec, step.outputs, {}, diagnostics);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const TrainedOutput& output = step.outputs[i];
    if (output.key.empty()) {
      check_class_names(spec, output, "", diagnostics);
    } else {
      check_class_names(spec, output, spec.model.outputs.at(i), diagnostics);
    }
    for (config::Warning& warning : output_warnings(
             output.form, *output.loss, last_node(step.model, i).name, output.loss_where)) {
      step.model.warnings.push_back(std::move(warning));
    }
  }
}

/// The outputs of the config with their losses.
std::vector<TrainedOutput> read_outputs(const config::RunSpec& spec, Diagnostics& diagnostics) {
  std::vector<TrainedOutput> outputs;
  Diagnostics reported;  // by the check of the config
  for (config::TrainedOutput& output_config : config::trained_outputs(spec, reported)) {
    TrainedOutput output;
    const bool same = !outputs.empty() && output_config.loss.where == outputs.back().loss_where;
    output.has_loss = output_config.has_loss;
    if (output_config.has_loss)
      output.loss = make_loss(output_config.loss, same ? reported : diagnostics);
    output.loss_where = output_config.key.empty() ? spec.where("loss") : output_config.loss.where;
    output.key = std::move(output_config.key);
    output.loss_type = std::move(output_config.loss.type);
    output.loss_weight = output_config.loss_weight;
    output.class_names = std::move(output_config.class_names);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

/// An error where the learning rate of the first step, or that after a warm-up, is 0.
void check_rate_divides(const graph::Attrs& rate, Where where, Diagnostics& diagnostics) {
  const bool warms_up = rate.get_or<std::int64_t>("warmup_steps", 0) > 0;
  if (rate.get_or<double>("base", 1) > 0 &&
      (!warms_up || rate.get_or<double>("warmup_start", 1) > 0)) {
    return;
  }
  diagnostics.error(std::move(where), "ftrl divides by the learning rate, which must be above 0");
}

}  // namespace

StepSpec read_step_spec(const config::RunSpec& spec, Diagnostics& diagnostics) {
  StepSpec step;
  step.model = read_model(spec, diagnostics);
  for (const auto& [count, what, path] :
       {std::tuple(step.model.inputs.size(), "inputs", "model.inputs"),
        std::tuple(step.model.outputs.size(), "outputs", "model.outputs")}) {
    if (count < 2 || spec.data.format == config::DataFormat::npz) continue;
    diagnostics.error(spec.where(path),
                      fmt::format("{} {} are the arrays of a file of data.format: npz, which this "
                                  "config does not name",
                                  count,
                                  what));
  }
  step.input_where = spec.where(spec.model.inputs.empty() ? "model.input" : "model.inputs");
  step.outputs = read_outputs(spec, diagnostics);
  step.optimizer = make_optimizer(spec.optimizer, diagnostics);
  if (step.optimizer.def != nullptr) {
    step.learning_rate = read_schedule(
        step.optimizer.spec.learning_rate, step.optimizer.def->default_learning_rate, diagnostics);
  }
  if (step.optimizer.def != nullptr && step.optimizer.def->divides_by_rate) {
    check_rate_divides(step.learning_rate, spec.where("optimizer.learning_rate"), diagnostics);
  }
  if (step.optimizer.def != nullptr && !step.optimizer.def->elementwise &&
      spec.parallel.shard == config::ShardOf::optimizer) {
    diagnostics.error(
        spec.where("parallel.shard"),
        fmt::format("{} updates a matrix by all of its gradients, which the ranks would divide",
                    step.optimizer.def->type),
        "parallel.shard: none, or another optimizer");
  }
  read_metrics(spec, step.outputs, diagnostics);
  step.loss_scaling =
      precision::resolve_loss_scaling(spec.precision.loss_scale, computes_float16(spec.precision));
  step.on_nonfinite = spec.precision.on_nonfinite;
  step.grad_dtype = spec.precision.grad_dtype;
  step.accumulate_steps = spec.training.accumulate_steps;
  step.parallel = spec.parallel;
  step.sample_weights = spec.data.sample_weight.has_value();
  check_mixup(spec, step.model, step.outputs, diagnostics);
  if (spec.data.augment.mixup) step.mixup_alpha = spec.data.augment.mixup->alpha;
  step.input_scale = spec.data.scale;
  step.seed = static_cast<std::uint64_t>(spec.seed);
  bool stateful = false;
  for (const ModelNode& node : step.model.nodes) {
    if (!node.layer->keeps_state()) continue;
    stateful = true;
    step.model.carries_states = !spec.data.shuffle;
    if (step.model.carries_states) continue;
    warn(step.model.warnings,
         config::k_shuffled_state,
         node.where,
         fmt::format("layer '{}' is stateful, but data.shuffle is on: a sample begins with the "
                     "state of an unrelated one",
                     node.name));
  }
  const auto idle = [&](bool given, const char* path) {
    if (!given || stateful) return;
    warn(step.model.warnings,
         config::k_idle_state_setting,
         spec.where(path),
         "is for stateful layers, and the model has none");
  };
  idle(spec.data.streams, "data.streams");
  idle(spec.training.reset_states, "training.reset_states");
  if (!diagnostics.empty()) return step;
  look_at_outputs(spec, step, diagnostics);
  return step;
}

std::vector<std::string> StepSpec::counters() const {
  std::vector<std::string> names;
  for (const TrainedOutput& output : outputs) {
    for (const std::string& metric : output.metrics) {
      for (const std::string& counter : counter_names(metric, output.form)) {
        names.push_back(config::metric_name(output.key, counter));
      }
    }
  }
  return names;
}

namespace {

/// Warns of layers with trainable weights that a training step does not update.
void warn_of_untrained(const StepSpec& step,
                       const graph::Graph& graph,
                       std::vector<config::Warning>& warnings) {
  std::set<std::string_view> updated;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Origin& origin = graph.node(id).origin;
    if (origin.phase == graph::Phase::update) updated.insert(origin.layer);
  }
  if (updated.empty()) return;
  for (const ModelNode& node : step.model.nodes) {
    for (const graph::Variable& v : graph.variables()) {
      if (v.layer != node.name || v.role != graph::Role::weight || !v.trainable) continue;
      if (updated.contains(std::string_view(v.name).substr(0, v.name.rfind('/')))) continue;
      warn(warnings,
           config::k_untrained_weights,
           node.where,
           fmt::format("no gradient of the loss reaches '{}' of layer '{}', which keeps its "
                       "initial values",
                       v.name,
                       node.name));
      break;
    }
  }
}

}  // namespace

std::vector<config::Warning> graph_warnings(const config::RunSpec& spec,
                                            const StepSpec& step,
                                            const graph::Graph& graph) {
  std::vector<config::Warning> warnings = step.model.warnings;
  warn_of_untrained(step, graph, warnings);
  warn_of_idle_scale(spec, step, graph, warnings);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const graph::Node& output = graph.node(graph.fetch(step.outputs[i].named("outputs")).node);
    const ModelNode& last = last_node(step.model, i);
    // The loss casts to float32: a final Cast from a 16-bit type means a 16-bit output.
    if (!output.is(graph::ops::k_cast) || !is_half(graph.type(output.inputs[0]).dtype)) continue;
    warn(warnings,
         config::k_half_output,
         last.where,
         fmt::format("the model's output '{}' is {}; give its last layer dtype: float32",
                     last.name,
                     name(graph.type(output.inputs[0]).dtype)));
  }
  const auto half_weights = [&graph](const ModelNode& node) {
    return std::ranges::any_of(graph.variables(), [&node](const graph::Variable& v) {
      return v.layer == node.name && v.role == graph::Role::weight && is_half(v.type.dtype) &&
             is_half(node.precision.policy.variable);
    });
  };
  const auto node = std::ranges::find_if(step.model.nodes, half_weights);
  const bool own_weights = node != step.model.nodes.end();
  if (own_weights) {
    const std::string_view dtype = name(node->precision.policy.variable);
    warn(warnings,
         config::k_half_weights,
         node->where,
         fmt::format("layer '{0}' stores its weights in {1}: small updates are lost and there is "
                     "no master copy; mixed_{1} keeps one",
                     node->name,
                     dtype));
  }
  std::optional<config::Warning> unscaling = precision::unscaling_warning(
      graph,
      step.loss_scaling.initial,
      own_weights ? "a mixed policy unscales in float32"
                  : "precision.rewrite_rules: 2.19 unscales in float32");
  if (unscaling) warnings.push_back(std::move(*unscaling));
  return warnings;
}

}  // namespace halfstep::nn
