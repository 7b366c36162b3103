#include "nn/reference.h"

#include <fmt/format.h>

#include "config/load.h"
#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "nn/layers/samples.h"
#include "nn/model.h"
#include "nn/optim/schedule.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// A pure policy: a variable that is float32 under it is float32 under every policy.
constexpr std::string_view k_config = R"(data: {{name: synthetic_digits}}
loss: mean_squared_error
optimizer: sgd
precision: {{policy: float16}}
model: {}
)";

/// The entries of a flow map without its braces, for insertion into another map.
std::string_view inside(std::string_view map) { return map.substr(1, map.size() - 2); }

std::string example_text(const LayerDef& def) {
  const std::string_view fields = inside(def.traits.example);
  return fmt::format("{{type: {}{}{}}}", def.type, fields.empty() ? "" : ", ", fields);
}

std::string example_model(const LayerDef& def) {
  const std::string text = example_text(def);
  const std::string_view input = def.traits.example_input;
  if (def.traits.min_inputs == 1) {
    return fmt::format("{{input: {}, layers: [{{name: it, {}}}]}}", input, inside(text));
  }
  return fmt::format(
      "{{inputs: {{a: {0}, b: {0}}}, nodes: {{it: {{from: [a, b], {1}}}}}, outputs: it}}",
      input,
      inside(text));
}

}  // namespace

LayerExample layer_example(const LayerDef& def) {
  Diagnostics diagnostics;
  const std::string config = fmt::format(k_config, example_model(def));
  const config::RunSpec spec =
      config::parse_run_spec(config::load_text(config, "example", diagnostics), diagnostics);
  const Model model = read_model(spec, diagnostics);
  diagnostics.throw_if_any();

  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const Value ordinal = b.placeholder("ordinal", DType::int64, {});
  std::vector<Value> inputs;
  for (const Model::Input& input : model.inputs) {
    inputs.push_back(b.placeholder(input.name, DType::float32, batched(1, input.shape)));
  }
  const Forward forward = build_forward(b, model, inputs, ordinal, 0, true);

  LayerExample example;
  example.text = example_text(def);
  example.input = model.inputs.front().shape;
  example.output = sample_of(b.shape(forward.outputs.front()));
  for (const graph::Variable& v : graph.variables()) {
    example.variables.push_back({v.name.substr(v.name.rfind('/') + 1),
                                 v.type.shape,
                                 v.trainable,
                                 v.type.dtype == DType::float32});
  }
  return example;
}

std::vector<std::string> optimizer_slots(const OptimizerDef& def) {
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const Value handle = b.variable({.name = "w",
                                   .type = {DType::float32, {1}},
                                   .role = graph::Role::weight,
                                   .trainable = true,
                                   .initializer = {},
                                   .layer = "w"});
  const Weight weight{"w", handle, b.read(handle)};
  const Value gradient = b.placeholder("gradient", DType::float32, {1});
  const Value rate = b.placeholder("rate", DType::float32, {});
  const Value number = b.placeholder("number", DType::float32, {});
  OptimizerContext context{b, weight, gradient, rate, number, {}};
  Diagnostics diagnostics;
  config::Node defaults;
  defaults.kind = config::Node::Kind::map;
  def.make(defaults, diagnostics)->update(context);
  diagnostics.throw_if_any();

  std::vector<std::string> slots;
  for (const graph::Variable& v : graph.variables()) {
    if (v.role == graph::Role::slot) slots.push_back(v.name.substr(v.name.rfind('/') + 1));
  }
  return slots;
}

std::string_view labels_doc(const LossDef& def) {
  Diagnostics diagnostics;
  config::Node defaults;
  defaults.kind = config::Node::Kind::map;
  const LabelKind kind = def.make(defaults, diagnostics)->label_kind();
  diagnostics.throw_if_any();
  switch (kind) {
    case LabelKind::classes:
      return "class numbers, integers from 0 to outputs - 1";
    case LabelKind::targets:
      return "floats, as many per sample as the model has outputs; integers are the target of a "
             "single output, of several outputs class numbers, which become one-hot rows";
    case LabelKind::events:
      return "of a single output 0 or 1, as integers or floats; of several outputs floats, as many "
             "per sample, or class numbers, which become one-hot rows";
    case LabelKind::signs:
      return "of a single output 1, and -1 or 0, as integers or floats; of several outputs floats, "
             "as many per sample, or class numbers, which become one-hot rows";
  }
  return {};
}

namespace {

bool is_initializer(std::string_view kind) { return kind.ends_with("_initializer"); }
/// The fields of layers around another layer.
bool is_inner_layer(std::string_view kind) { return kind == "layer" || kind == "backward_layer"; }

template <class Table>
std::vector<std::string> types_of(const Table& table) {
  return mapped<std::string>(table, [](const auto* def) { return def->type; });
}

template <class Table>
void visit(const Table& table, std::string_view type, config::Fields& f) {
  for (const auto* def : table) {
    if (def->type == type) def->fields(f);
  }
}

std::vector<std::string> names_of(std::string_view kind) {
  if (kind == "layers" || kind == "nodes" || is_inner_layer(kind)) return types_of(layer_table());
  if (kind == "loss") return types_of(loss_table());
  if (kind == "optimizer") return types_of(optimizer_table());
  std::vector<std::string> names;
  if (kind == "learning_rate") {
    for (const ScheduleDef& def : schedule_table()) names.emplace_back(def.type);
  }
  if (is_initializer(kind)) {
    names.assign(initializer_names().begin(), initializer_names().end());
  }
  return names;
}

void visit_fields(std::string_view kind, std::string_view type, config::Fields& f) {
  LayerCommon common;
  if (kind == "layers") {
    f.field("name",
            common.name,
            {.doc = "Name of the layer and prefix of its weights; null: its type, numbered where "
                    "there are several."});
  }
  if (kind == "nodes") {
    f.field("from",
            common.from,
            {.doc = "Names of the nodes or inputs that the layer takes.", .required = true});
  }
  if (kind == "layers" || kind == "nodes") {
    common.settings(f);
    visit(layer_table(), type, f);
  }
  if (is_inner_layer(kind)) visit(layer_table(), type, f);
  if (kind == "loss") visit(loss_table(), type, f);
  if (kind == "optimizer") {
    OptimizerSpec spec;
    spec.fields(f);
    visit(optimizer_table(), type, f);
  }
  if (kind == "learning_rate") {
    for (const ScheduleDef& def : schedule_table()) {
      if (def.type == type) def.fields(f);
    }
  }
  if (is_initializer(kind)) visit_initializer(type, f);
}

std::string family_of(std::string_view kind) {
  if (is_inner_layer(kind)) return "layer";
  return std::string(is_initializer(kind) ? "initializer" : kind);
}

}  // namespace

config::SchemaTypes schema_types() { return {family_of, names_of, visit_fields}; }

}  // namespace halfstep::nn
