// Layers, losses, optimizers, schedules, metrics and initializers, from their registries.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "config/scalar.h"
#include "nn/initializer.h"
#include "nn/layers/activations.h"
#include "nn/metric.h"
#include "nn/optim/schedule.h"
#include "nn/reference.h"
#include "reference/reference.h"

namespace halfstep::app {

using config::FieldDoc;

std::vector<FieldDoc> shown(std::vector<FieldDoc> fields) {
  static const config::SchemaTypes k_types = nn::schema_types();
  const auto activations = nn::activation_names();
  std::vector<std::string> left_out;
  for (FieldDoc& field : fields) {
    if (!field.kind.empty()) field.kind = k_types.family(field.kind);
    if (!field.kind.empty() && field.words.empty()) field.words = k_types.names(field.kind);
    if (std::equal(field.words.begin(), field.words.end(), activations.begin(), activations.end()))
      field.kind = "activation";
    if (field.type == "section" && field.name.ends_with("_regularizer")) {
      field.kind = "regularizer";
      left_out.push_back(field.path + ".");
    } else if (!field.shorthand_key.empty()) {
      field.doc +=
          fmt::format(" A value in place of the map stands for `{}`.", field.shorthand_key);
    }
  }
  std::erase_if(fields, [&](const FieldDoc& field) {
    return std::ranges::any_of(
        left_out, [&](const std::string& prefix) { return field.path.starts_with(prefix); });
  });
  return fields;
}

std::vector<FieldDoc> fields_of(const std::function<void(config::Fields&)>& visit) {
  return shown(config::describe_fields(visit));
}

namespace {

// Layers.

std::string dtypes_of(const nn::LayerExample& example) {
  std::string policy, fixed;
  for (const nn::VariableDesc& v : example.variables) {
    std::string& list = v.float32 ? fixed : policy;
    list += (list.empty() ? "" : ", ") + v.name;
  }
  std::string text = "x and y have the compute dtype of the layer's policy, to which x is cast";
  if (!policy.empty()) text += fmt::format("; stored in its variable dtype: {}", policy);
  if (!fixed.empty()) text += fmt::format("; stored in float32 under every policy: {}", fixed);
  return text;
}

std::string result_of(const nn::LayerExample& example) {
  std::string text =
      fmt::format("samples of {} become {}", to_string(example.input), to_string(example.output));
  std::string variables;
  for (const nn::VariableDesc& v : example.variables) {
    variables += fmt::format("{}{} {}{}",
                             variables.empty() ? "" : ", ",
                             v.name,
                             to_string(v.shape),
                             v.trainable ? "" : " (not trained)");
  }
  return variables.empty() ? text : text + "; " + variables;
}

Entry layer_entry(const nn::LayerDef& def) {
  const nn::LayerExample example = nn::layer_example(def);
  Entry entry{.kind = kinds::k_layer, .name = std::string(def.type), .doc = std::string(def.doc)};
  const std::string inputs = nn::input_count(def.traits);
  if (inputs != "1 input") {
    const bool several = def.traits.min_inputs > 1;
    entry.facts.push_back(
        {"takes", several ? inputs + ", so only in a graph: from: [a, b]" : inputs});
  }
  entry.facts.push_back({"shapes", std::string(def.traits.shapes)});
  entry.facts.push_back({"dtypes", dtypes_of(example)});
  if (def.masks == nn::MaskUse::passed) entry.facts.push_back({"masks", "passed on"});
  if (def.masks == nn::MaskUse::used) entry.facts.push_back({"masks", "used, see `masking`"});
  if (!def.traits.numerics.empty()) {
    entry.facts.push_back({"precision", std::string(def.traits.numerics)});
  }
  entry.facts.push_back({"example", example.text});
  entry.facts.push_back({"gives", result_of(example)});
  entry.arguments = fields_of(def.fields);
  entry.common_arguments = fields_of([](config::Fields& f) { nn::LayerCommon().fields(f); });
  entry.prefixes = {"layer", "layers", "nodes", "model.layers", "model.nodes"};
  return entry;
}

Entry regularizer_entry() {
  Entry entry{.kind = kinds::k_regularizer,
              .name = "regularizer",
              .doc =
                  "A penalty that is added to the loss: a name (l1, l2 or l1_l2, with factors of "
                  "0.01) or a map. Weights that are not trained are not penalized."};
  entry.facts.push_back({"dtypes", "summed in float32"});
  entry.facts.push_back({"example", "kernel_regularizer: {l2: 1e-4}"});
  entry.arguments = config::describe_struct(nn::RegularizerSpec());
  return entry;
}

Topic layers() {
  Topic topic{
      .name = "layers",
      .title = "Layers",
      .doc = "layers, activations and regularizers",
      .text =
          "`model.layers` is a list of maps, each with the `type` of a layer and its arguments, "
          "each layer the input of the next; `model.nodes` is a map from names to such maps, each "
          "with its inputs in `from`. Shapes are given with the batch first; extents in a config "
          "omit it. Images are [height, width, channels]. The compute and variable dtypes are "
          "those of `precision.policy`, or of the layer's own `dtype`."};
  for (const nn::LayerDef* def : nn::layer_table()) topic.entries.push_back(layer_entry(*def));
  topic.entries.push_back(regularizer_entry());
  for (const nn::ActivationDef& def : nn::activation_table()) {
    topic.entries.push_back({.kind = kinds::k_activation,
                             .name = std::string(def.name),
                             .doc = fmt::format("y = {}", def.doc),
                             .facts = {{"example", fmt::format("activation: {}", def.name)}},
                             .prefixes = {"activation", "activations"},
                             .brief = true});
  }
  return topic;
}

// Losses, optimizers, schedules.

Topic losses() {
  Topic topic{
      .name = "losses",
      .title = "Losses",
      .doc = "the value that training minimizes, and the labels it takes",
      .text =
          "`loss` is the name of a loss, or a map with its `type` and arguments. A loss is one "
          "number per sample, averaged over the batch; penalties of regularizers are added. "
          "Outputs of the model are cast to float32 first: losses are float32 under every policy. "
          "`p` and `y` are outputs, `t` targets. Where the model ends in a softmax or sigmoid, a "
          "loss that takes probabilities trains through the scores before it, as Keras does."};
  for (const nn::LossDef* def : nn::loss_table()) {
    topic.entries.push_back(
        {.kind = kinds::k_loss,
         .name = std::string(def->type),
         .doc = std::string(def->doc),
         .facts = {{"labels", std::string(nn::labels_doc(*def))},
                   {"dtypes", "outputs are cast to float32; one float32 number per sample"},
                   {"example", fmt::format("loss: {}", def->type)}},
         .arguments = fields_of(def->fields),
         .prefixes = {"loss", "losses"}});
  }
  return topic;
}

Topic optimizers() {
  Topic topic{.name = "optimizers",
              .title = "Optimizers",
              .doc = "how weights change",
              .text =
                  "`optimizer` is the name of an optimizer, or a map with its `type` and "
                  "arguments. Formulas: `w` a weight, `g` its gradient after unscaling and "
                  "clipping, `lr` the learning rate. Updates are computed in the dtype in which "
                  "the weights are stored, float32 under float32 and the mixed policies; a skipped "
                  "step changes neither weights nor state."};
  std::vector<FieldDoc> common =
      fields_of([](config::Fields& f) { nn::OptimizerSpec().fields(f); });
  const auto rate_field = std::ranges::find(common, "learning_rate", &FieldDoc::name);
  require(rate_field != common.end(), "optimizers have no learning_rate");
  FieldDoc learning_rate = *rate_field;
  common.erase(rate_field);
  for (const nn::OptimizerDef* def : nn::optimizer_table()) {
    const std::string rate = config::shortest(def->default_learning_rate);
    const std::vector<std::string> slots = nn::optimizer_slots(*def);
    Entry entry{.kind = kinds::k_optimizer,
                .name = std::string(def->type),
                .doc = std::string(def->doc),
                .arguments = fields_of(def->fields),
                .common_arguments = common,
                .prefixes = {"optimizer", "optimizers"}};
    learning_rate.default_value = rate;
    entry.arguments.insert(entry.arguments.begin(), learning_rate);
    entry.facts.push_back({"state",
                           slots.empty() ? "none with the default arguments"
                                         : fmt::format("{} for each weight, of its shape and dtype",
                                                       fmt::join(slots, ", "))});
    entry.facts.push_back(
        {"example", fmt::format("optimizer: {{type: {}, learning_rate: {}}}", def->type, rate)});
    topic.entries.push_back(std::move(entry));
  }
  return topic;
}

Topic schedules() {
  Topic topic{.name = "schedules",
              .title = "Learning-rate schedules",
              .doc = "how the learning rate changes during training",
              .text =
                  "`optimizer.learning_rate` is a number, or a map with the `type` of a schedule "
                  "and its arguments. Steps are applied steps (skipped ones do not count, unless "
                  "`precision.loss_scale.step_counter` says so). A warm-up comes first: the rate "
                  "rises linearly from `warmup_start` to the schedule's first rate in "
                  "`warmup_steps` steps, and the formula counts `step` from its end. Rates are "
                  "computed in double and rounded to float32."};
  for (const nn::ScheduleDef& def : nn::schedule_table()) {
    topic.entries.push_back(
        {.kind = kinds::k_schedule,
         .name = std::string(def.type),
         .doc = std::string(def.doc),
         .facts = {{"example", fmt::format("learning_rate: {}", def.example)}},
         .arguments = fields_of(def.fields),
         .prefixes = {"schedule", "schedules", "learning_rate", "optimizer.learning_rate"}});
  }
  return topic;
}

Topic metrics() {
  Topic topic{.name = "metrics",
              .title = "Metrics",
              .doc = "quantities measured in addition to the loss",
              .text =
                  "`metrics` is a name or a list of names; the loss is always measured. Each is "
                  "measured on the training batches of an epoch and, with `val_` before its name, "
                  "on the validation samples (`data.validation_split`); once, at the end, on the "
                  "test set. Metrics are computed in float32 under every policy. Before a name, "
                  "`weighted_` weighs each sample by its `data.sample_weight` and divides by the "
                  "sum of the weights, as Keras's `weighted_metrics` do. Masked positions count "
                  "for no metric; in Keras they count for those that are not means, "
                  "such as precision."};
  for (const nn::MetricDef& def : nn::metric_table()) {
    topic.entries.push_back(
        {.kind = kinds::k_metric,
         .name = std::string(def.name),
         .doc = std::string(def.doc),
         .facts = {{"unit", std::string(def.unit)},
                   {"better", config::smaller_is_better(def.name) ? "smaller" : "greater"},
                   {"example", fmt::format("metrics: [{}]", def.name)}},
         .prefixes = {"metric", "metrics"}});
  }
  return topic;
}

Topic initializers() {
  Topic topic{
      .name = "initializers",
      .title = "Initializers",
      .doc = "initial values of weights",
      .text =
          "An argument such as `kernel_initializer` is the name of an initializer, or a map with "
          "its `type` and arguments. `fan_in` and `fan_out` are the inputs and outputs that one "
          "unit sees: of a matrix [in, out] its extents, of filters [height, width, in, out] "
          "height width in and height width out, of a vector its length twice. Values are drawn in "
          "float32 from (seed, name of the weight): every device and every policy that stores "
          "weights in float32 begins with the same ones."};
  for (const std::string_view name : nn::initializer_names()) {
    topic.entries.push_back(
        {.kind = kinds::k_initializer,
         .name = std::string(name),
         .doc = std::string(nn::initializer_doc(name)),
         .facts = {{"example", fmt::format("kernel_initializer: {}", name)}},
         .arguments = fields_of([name](config::Fields& f) { nn::visit_initializer(name, f); }),
         .prefixes = {"initializer", "initializers"}});
  }
  return topic;
}

}  // namespace

std::vector<Topic> reference_topics(const CLI::App& program) {
  std::vector<Topic> topics;
  topics.push_back(layers());
  topics.push_back(losses());
  topics.push_back(optimizers());
  topics.push_back(schedules());
  topics.push_back(metrics());
  topics.push_back(initializers());
  topics.push_back(data_topic());
  topics.push_back(config_topic());
  topics.push_back(policies_topic());
  topics.push_back(warnings_topic());
  topics.push_back(ops_topic());
  topics.push_back(reports_topic());
  topics.push_back(commands_topic(program));
  topics.push_back(exit_codes_topic());
  return topics;
}

}  // namespace halfstep::app
