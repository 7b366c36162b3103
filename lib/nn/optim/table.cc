#include <algorithm>
#include <array>

#include "config/describe.h"
#include "core/error.h"
#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "nn/missing_arguments.h"
#include "nn/optim/optimizer.h"

namespace halfstep::nn {

extern const OptimizerDef k_adadelta;
extern const OptimizerDef k_adagrad;
extern const OptimizerDef k_adam;
extern const OptimizerDef k_adamax;
extern const OptimizerDef k_adamw;
extern const OptimizerDef k_ftrl;
extern const OptimizerDef k_lion;
extern const OptimizerDef k_muon;
extern const OptimizerDef k_nadam;
extern const OptimizerDef k_rmsprop;
extern const OptimizerDef k_sgd;

namespace {

constexpr std::array k_optimizers{&k_adadelta,
                                  &k_adagrad,
                                  &k_adam,
                                  &k_adamax,
                                  &k_adamw,
                                  &k_ftrl,
                                  &k_lion,
                                  &k_muon,
                                  &k_nadam,
                                  &k_rmsprop,
                                  &k_sgd};

constexpr MissingArgument k_missing_arguments[] = {
    {"ema_momentum", "weights are not averaged"},
    {"ema_overwrite_frequency", "weights are not averaged"},
    {"gradient_accumulation_steps", "training.accumulate_steps has the parts of a step"},
    {"loss_scale_factor", "precision.loss_scale has the scale of the loss"},
    {"use_ema", "weights are not averaged"},
};

/// The part of an optimizer's map with the keys that all optimizers share, without an own decay.
config::Node common_part(const config::Node& node, const OptimizerDef& def) {
  const std::vector<config::FieldDoc> own = config::describe_fields(def.fields);
  const bool decays = std::ranges::any_of(
      own, [](const config::FieldDoc& field) { return field.name == k_weight_decay; });
  config::Node part = node;
  std::erase_if(part.entries, [&](const config::Node::Entry& entry) {
    return !contains(k_common_optimizer_keys, entry.key) || (decays && entry.key == k_weight_decay);
  });
  return part;
}

}  // namespace

std::span<const OptimizerDef* const> optimizer_table() { return k_optimizers; }

void OptimizerSpec::fields(config::Fields& f) {
  f.field(
      "learning_rate",
      learning_rate,
      {.doc =
           "Learning rate: a number, or a map with the `type` of a schedule and its arguments."});
  f.field(
      "clipvalue",
      clipvalue,
      {.doc =
           "Each element of each gradient is clipped to [-clipvalue, clipvalue]; null: no limit.",
       .above = 0});
  f.field(
      "clipnorm",
      clipnorm,
      {.doc = "Each gradient with a greater L2 norm is scaled down to this norm; null: no limit.",
       .above = 0});
  f.field("global_clipnorm",
          global_clipnorm,
          {.doc = "All gradients together are scaled down to this L2 norm where theirs is greater; "
                  "null: no limit. At most one of the three limits may be given.",
           .above = 0});
  f.field(k_weight_decay,
          weight_decay,
          {.doc = "Weight decay: before the update a step subtracts the weight times this times "
                  "the learning rate; null: none. adamw and muon have an own weight_decay.",
           .min = 0});
}

ConfiguredOptimizer make_optimizer(const config::Typed& typed, Diagnostics& diagnostics) {
  ConfiguredOptimizer configured;
  std::vector<std::string> known;
  for (const OptimizerDef* def : k_optimizers) {
    known.emplace_back(def->type);
    if (def->type != typed.type) continue;
    configured.def = def;
    configured.optimizer = def->make(
        without_missing(k_missing_arguments, typed.node, def->fields, diagnostics), diagnostics);
    config::read(common_part(typed.node, *def), configured.spec, diagnostics);
    const OptimizerSpec& spec = configured.spec;
    if (spec.clipvalue.has_value() + spec.clipnorm.has_value() + spec.global_clipnorm.has_value() >
        1) {
      diagnostics.error(typed.where,
                        "at most one of clipvalue, clipnorm and global_clipnorm may be given");
    }
    return configured;
  }
  // A missing key was reported when the config was read.
  if (typed.type.empty() && !diagnostics.empty()) return configured;
  diagnostics.error(typed.where,
                    typed.type.empty() ? "an optimizer is needed"
                                       : fmt::format("unknown optimizer '{}'", typed.type),
                    choices(typed.type, known));
  return configured;
}

graph::Value OptimizerContext::slot(std::string_view slot_name,
                                    double initial,
                                    const std::optional<Shape>& shape) {
  graph::TensorType type = b.type(weight.read);
  if (shape) type.shape = *shape;
  const std::string name = fmt::format("{}/{}", weight.name, slot_name);
  std::optional<graph::Slice> slice;
  if (weight.slice && !shape) slice = {name, weight.slice->full_shape, weight.slice->begin};
  return b.variable({name,
                     type,
                     graph::Role::slot,
                     false,
                     {graph::Initializer::Kind::constant, initial, 0, 0},
                     b.origin().layer,
                     std::move(slice)});
}

void OptimizerContext::update(std::string_view op,
                              std::vector<graph::Value> inputs,
                              graph::Attrs attrs) {
  if (ok.valid()) inputs.push_back(ok);
  if (weight_decay != 0 && graph::op_table().find(op)->update) {
    attrs.set(std::string(k_weight_decay), weight_decay);
  }
  b.add_node(op, std::move(inputs), std::move(attrs));
}

graph::Value OptimizerContext::power(double beta) {
  return b.add("Pow", {scalar(beta), iteration});
}

}  // namespace halfstep::nn
