#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "command.h"
#include "config/schema.h"
#include "core/files.h"
#include "core/ranges.h"
#include "nn/reference.h"
#include "nn/step_graph.h"
#include "plan/prepare_graph.h"
#include "run_options.h"
#include "terminal.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

/// The shapes of a data set that fits the model and its loss.
nn::DataShape fitting_data(const nn::StepSpec& step_spec) {
  nn::DataShape data;
  data.sample = nn::sample_shape(step_spec.model);
  for (const nn::TrainedOutput& output : step_spec.outputs) {
    const Shape& shape = output.form.shape;
    const bool classes = output.loss->label_kind() == nn::LabelKind::classes;
    // A class at each position.
    data.label = classes ? Shape(shape.dims().first(shape.rank() - 1)) : shape;
    data.label_dtype = classes ? DType::int32 : DType::float32;
    if (!output.is_labelled()) {
      data.label = {0};
      data.label_dtype = DType::float32;
    }
    data.labels.push_back({data.label_dtype, data.label});
  }
  if (data.labels.size() == 1) {
    data.labels.clear();
    return data;
  }
  std::int64_t values = 0;
  for (const graph::TensorType& label : data.labels) values += label.shape.elements();
  data.label = {values};
  data.label_dtype = DType::float32;
  return data;
}

/// Builds and rewrites the training step, as `train` does, for data that fit the model; returns the
/// warnings. Errors: UserError(config) for a step that cannot be built.
std::vector<config::Warning> check_step(config::RunSpec spec) {
  // The default target on a GPU is float16.
  if (spec.device.kind == config::DeviceKind::cuda && !spec.precision.target) {
    spec.precision.target = DType::float16;
  }
  Diagnostics diagnostics;
  const nn::StepSpec step_spec = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  // No shape rule depends on the number of samples.
  constexpr std::int64_t k_samples = 2;
  const plan::Prepared step = plan::prepare_graph(
      nn::build_step(step_spec, fitting_data(step_spec), k_samples, nn::Purpose::train), spec);
  std::vector<config::Warning> warnings = step.warnings;
  for (config::Warning& warning : nn::graph_warnings(spec, step_spec, step.graph)) {
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

/// Checks model, loss, optimizer and precision of a config without data.
int check(const RunOptions& options) {
  apply_logging(options);
  const LoadedConfig loaded = load_config(options);
  std::vector<config::Warning> warnings = loaded.spec.warnings;
  for (config::Warning& warning : check_step(loaded.spec)) warnings.push_back(std::move(warning));
  print_warnings(warnings);
  if (!options.quiet) print_line("{}: ok", fmt::join(options.configs, ", "));
  return 0;
}

int show(const RunOptions& options, bool origins, bool minimal) {
  apply_logging(options);
  const LoadedConfig loaded = load_config(options);
  config::PrintOptions print;
  print.origins = origins;
  print.minimal = minimal;
  fmt::print("{}", config::print(loaded.spec, print));
  return 0;
}

int schema() {
  fmt::print("{}", config::schema_of(config::RunSpec{}, "halfstep config", nn::schema_types()));
  return 0;
}

/// A config to start from.
struct Template {
  std::string_view name;
  std::string_view text;
};

constexpr std::string_view k_mnist_mlp = R"(# A fully connected network on MNIST.
version: 1
name: mnist_mlp
seed: 1
data: {name: mnist, validation_split: 0.1}
model:
  input: [784]
  layers:
    - {type: dense, units: 128, activation: relu}
    - {type: dropout, rate: 0.2}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
precision:
  policy: mixed_bfloat16        # float32, mixed_float16 or mixed_bfloat16
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 128}
)";

constexpr std::string_view k_mnist_cnn = R"(# A convolutional network on MNIST.
version: 1
name: mnist_cnn
seed: 1
data: {name: mnist, validation_split: 0.1}
model:
  input: [28, 28, 1]
  layers:
    - {type: conv2d, filters: 32, kernel_size: 3, activation: relu}
    - {type: conv2d, filters: 64, kernel_size: 3, activation: relu}
    - {type: max_pooling2d}
    - {type: flatten}
    - {type: dropout, rate: 0.5}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
precision:
  policy: mixed_float16
  loss_scale: {mode: auto, initial: 32768, growth_steps: 2000}   # dynamic with float16
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 128}
)";

constexpr std::string_view k_keras_guide = R"(# The model of TensorFlow's mixed precision guide.
version: 1
name: keras_guide
seed: 1234
data: {name: mnist, validation_split: 0.2}
model:
  input: [784]
  layers:
    - {name: dense_1, type: dense, units: 4096, activation: relu}
    - {name: dense_2, type: dense, units: 4096, activation: relu}
    - {name: dense_logits, type: dense, units: 10}
    - {name: predictions, type: softmax, dtype: float32}
precision:
  policy: mixed_float16
loss: sparse_categorical_crossentropy
optimizer: {type: rmsprop, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 8192}
)";

constexpr std::array k_templates{Template{"mnist-mlp", k_mnist_mlp},
                                 Template{"mnist-cnn", k_mnist_cnn},
                                 Template{"keras-guide", k_keras_guide}};

int init(const std::string& name, const std::string& out) {
  if (const Template* found = find_or_null(k_templates, name, &Template::name)) {
    if (out.empty()) {
      fmt::print("{}", found->text);
    } else if (std::filesystem::exists(out)) {
      throw UserError(ErrorKind::config, {out, 0, 0, ""}, "exists already");
    } else {
      write_file_atomically(out, found->text);
    }
    return 0;
  }
  const auto known = mapped<std::string>(k_templates, &Template::name);
  const std::string hint = did_you_mean(name, known);
  throw UserError(ErrorKind::config,
                  {},
                  fmt::format("unknown template '{}'", name),
                  hint.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : hint);
}

std::function<int()> declare_config(CLI::App& command) {
  struct State {
    RunOptions check, show;
    bool origins = false, minimal = false;
    std::string name, out;
  };
  const auto state = std::make_shared<State>();
  command.require_subcommand(1);
  CLI::App* check_command = command.add_subcommand("check", "report every problem of a config");
  declare(*check_command, state->check, {.training = true, .numerics = true, .strict = true});
  CLI::App* show_command =
      command.add_subcommand("show", "the config with defaults and overrides, as YAML");
  declare(*show_command, state->show, {.training = true, .numerics = true});
  show_command->add_flag("--origins", state->origins, "where each value comes from");
  show_command->add_flag(
      "--minimal", state->minimal, "only settings that differ from the defaults");
  CLI::App* schema_command =
      command.add_subcommand("schema", "JSON Schema of configs, for editors");
  CLI::App* init_command = command.add_subcommand("init", "a config to start from");
  init_command->add_option("TEMPLATE", state->name, "mnist-mlp, mnist-cnn or keras-guide")
      ->required();
  init_command->add_option("-o,--out", state->out, "file; stdout by default");
  return [=] {
    if (check_command->parsed()) return check(state->check);
    if (show_command->parsed()) return show(state->show, state->origins, state->minimal);
    if (schema_command->parsed()) return schema();
    return init_command->parsed() ? init(state->name, state->out) : 0;
  };
}

}  // namespace

extern const Command k_config{
    "config", "check or show a config, its JSON Schema, templates", declare_config};

}  // namespace halfstep::app
