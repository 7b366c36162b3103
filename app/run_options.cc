#include "run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "core/log.h"
#include "environment.h"
#include "nn/step_graph.h"
#include "number_flags.h"
#include "precision/tf_environment.h"
#include "study/policy_list.h"
#include "study/random_data.h"
#include "terminal.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

/// Adds the setting of a named flag.
void add_setting(std::vector<config::Override>& overrides,
                 std::vector<std::string>& written,
                 std::string_view flag,
                 std::string_view path,
                 const std::optional<std::string>& value) {
  if (!value) return;
  overrides.push_back({config::Override::Kind::set, std::string(path), *value, std::string(flag)});
  written.push_back(fmt::format("{}={}", path, *value));
}

/// The settings of --policy, which takes the rewrite by the names that `compare` has for it.
/// Errors: UserError(config) where --rewrite sets it too.
void add_policy(std::vector<config::Override>& overrides,
                std::vector<std::string>& written,
                const RunOptions& o) {
  constexpr std::string_view k_flag = "--policy";
  const auto known = study::policy_settings(o.policy.value_or(""));
  // An unknown name is left to the config's check.
  if (!known || known->rewrite == "none") {
    return add_setting(overrides, written, k_flag, "precision.policy", o.policy);
  }
  if (o.rewrite) {
    throw UserError(ErrorKind::config,
                    {std::string(k_flag), 0, 0, ""},
                    fmt::format("'{}' excludes --rewrite", *o.policy));
  }
  const auto add = [&](std::string_view path, std::string_view value) {
    if (!value.empty()) add_setting(overrides, written, k_flag, path, std::string(value));
  };
  add("precision.policy", known->policy);
  add("precision.rewrite", known->rewrite);
  add("precision.target", known->target);
}

std::vector<config::Override> flag_overrides(const RunOptions& o,
                                             std::vector<std::string>& written) {
  using config::Override;
  std::vector<Override> overrides = environment_overrides();
  for (const Override& setting : o.settings) {
    overrides.push_back(setting);
    written.push_back(setting.kind == Override::Kind::unset ? "~" + setting.path
                                                            : setting.path + "=" + setting.value);
  }
  add_policy(overrides, written, o);
  add_setting(overrides, written, "--rewrite", "precision.rewrite", o.rewrite);
  add_setting(overrides, written, "--tensorflow", k_rewrite_rules, o.tensorflow);
  add_setting(overrides, written, "--device", "device", o.device);
  add_setting(overrides, written, "--threads", "device.threads", o.threads);
  add_setting(overrides, written, "--batch-size", "training.batch_size", o.batch_size);
  add_setting(overrides, written, "--seed", "seed", o.seed);
  add_setting(overrides, written, "--epochs", "training.epochs", o.epochs);
  add_setting(overrides, written, "--max-steps", "training.max_steps", o.max_steps);
  add_setting(overrides, written, "--time-limit", "training.time_limit", o.time_limit);
  add_setting(overrides, written, "--target", "training.target", o.target);
  add_setting(overrides, written, "--numerics", "report.numerics.mode", o.numerics);
  if (o.allow_fallback) {
    add_setting(overrides, written, "--allow-fallback", "precision.fallback", "warn");
  }
  return overrides;
}

/// A repeatable flag, recorded in the order of the command line.
void add_setting_flag(CLI::App& command,
                      RunOptions& o,
                      const std::string& flag,
                      config::Override::Kind kind,
                      const std::string& doc) {
  command
      .add_option_function<std::string>(
          flag,
          [&o, flag, kind](const std::string& argument) {
            o.settings.push_back(config::Override::parse(kind, flag, argument));
          },
          doc)
      ->take_last()
      ->trigger_on_parse();
}

}  // namespace

data::DataOptions data_options(const LoadedConfig& loaded) {
  const config::DataSpec& spec = loaded.spec.data;
  data::DataOptions options;
  options.name = spec.name.value_or("");
  if (spec.format) options.format = config::name_of(*spec.format, config::k_data_formats);
  options.path = spec.resolved_path().value_or("");
  options.sha256 = spec.sha256.value_or("");
  options.layout = spec.layout;
  options.image_conversion = image_conversion(spec);
  options.skip_bad_samples = spec.on_bad_sample == config::OnBadSample::skip;
  options.labels_are_samples = spec.labels == config::DataLabels::samples;
  options.test_split = spec.test_split;
  options.split_seed = static_cast<std::uint64_t>(spec.split_seed);
  options.table = spec.table;
  options.sample_weight = spec.sample_weight.value_or("");
  options.labels_are_values = loaded.spec.regression();
  Diagnostics checked;  // load_config did
  const nn::StepSpec step = nn::read_step_spec(loaded.spec, checked);
  for (const nn::TrainedOutput& output : step.outputs) {
    options.labels_are_class_numbers = output.loss->label_kind() == nn::LabelKind::classes;
    options.ignored_label = output.loss->ignored_class();
    if (output.key.empty()) {
      options.class_names = output.class_names;
      options.model_output = output.form.shape;
      continue;
    }
    data::LabelSpec& part =
        options.outputs.emplace_back(data::LabelSpec{output.key, options.labels_are_class_numbers});
    part.ignored_label = options.ignored_label;
    part.absent = !output.is_labelled();
    if (part.absent) part.shape = {0};
    part.class_names = output.class_names;
    part.output = output.form.shape;
  }
  options.validation_split = spec.validation_split;
  options.text = spec.text;
  options.encoding = loaded.table;
  options.vocabulary = loaded.text;
  options.scale = spec.scale;
  if (step.model.inputs.size() > 1) {
    options.inputs = study::input_parts(step.model);
  } else {
    options.model_input = step.model.inputs.at(0).shape;
  }
  // options.seed stays 0: the content of a generated set does not depend on the seed of the run.
  options.train_samples = spec.train_samples;
  options.test_samples = spec.test_samples;
  options.search_paths = data_search_paths(loaded.path);
  if (!loaded.data_source.empty()) {
    options.search_paths.push_back(
        std::filesystem::path(loaded.data_source).parent_path().string());
  }
  options.where = loaded.spec.where("data");
  return options;
}

void declare(CLI::App& command, RunOptions& o, RunFlags flags) {
  using config::Override;
  command
      .add_option(
          "CONFIG,-c,--config", o.configs, "YAML config; after -c any number, a later one wins")
      ->allow_extra_args(false);
  add_setting_flag(command, o, "--set", Override::Kind::set, "PATH=VALUE, VALUE is YAML");
  add_setting_flag(command, o, "--set-str", Override::Kind::set_text, "PATH=TEXT, taken literally");
  add_setting_flag(command, o, "--unset", Override::Kind::unset, "PATH to remove");
  command.add_option(
      "--policy", o.policy, "float32, mixed_float16, mixed_bfloat16, rewrite:bfloat16, ...");
  command.add_option("--rewrite", o.rewrite, "none or auto");
  command.add_option("--device", o.device, "auto, cpu, cuda or cuda:N");
  command.add_option("--threads", o.threads, "CPU threads");
  if (flags.batch_size) command.add_option("--batch-size", o.batch_size, "samples per step");
  if (flags.seed) command.add_option("--seed", o.seed, "of weights, order and dropout");
  command.add_flag("--allow-fallback", o.allow_fallback, "another precision or device is fine");
  command.add_option("--color", o.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  // CLI11 2.4 counts a flag bound to a number as given, whether it is or not.
  command.add_flag_function(
      "-v,--verbose",
      [&o](std::int64_t count) { o.verbosity = static_cast<int>(count); },
      "say more");
  command.add_flag("-q,--quiet", o.quiet, "print only warnings and errors");
  command.add_option("--log-file", o.log_file, "messages go there too");
  if (flags.json) {
    command.add_flag("--json", o.json, "print the report on stdout and nothing else");
  }
  if (flags.run_dir) {
    command.add_option("--run-dir", o.run_dir, "the run's own directory")
        ->envname("HALFSTEP_RUN_DIR");
  }
  if (flags.progress) {
    command.add_option("--progress", o.progress, "auto, bar, lines or none")
        ->check(CLI::IsMember({"auto", "bar", "lines", "none"}));
    add_time(command,
             "--progress-every",
             o.progress_every,
             "seconds",
             "seconds between lines of progress where there is no terminal");
  }
  if (flags.strict) command.add_flag("--strict", o.strict, "a warning is an error");
  if (flags.numerics) {
    command.add_option("--numerics",
                       o.numerics,
                       "none, sample or full: statistics of 16-bit values, into numerics.jsonl");
  }
  if (!flags.training) return;
  command.add_option("--epochs", o.epochs, "passes over the data");
  command.add_option("--max-steps", o.max_steps, "batches after which training ends");
  command.add_option("--target", o.target, "METRIC=VALUE that ends training");
}

LoadedConfig load_config(const RunOptions& options) {
  if (options.configs.empty()) {
    throw UserError(ErrorKind::config,
                    {"CONFIG", 0, 0, ""},
                    "is missing: name a YAML file, as in 'halfstep train configs/mnist_cnn.yaml'",
                    "'halfstep config init mnist-cnn -o my.yaml' writes one");
  }
  LoadedConfig loaded;
  Diagnostics diagnostics;
  const std::vector<config::Override> overrides = flag_overrides(options, loaded.overrides);
  config::LoadOptions load;
  load.environment = environment;
  load.texts = &loaded.texts;
  const config::Node node = config::assemble(options.configs, overrides, diagnostics, load);
  loaded.spec = config::parse_run_spec(node, diagnostics);
  nn::read_step_spec(loaded.spec, diagnostics);
  diagnostics.throw_if_any();
  loaded.spec.precision.tensorflow_variables =
      environment_with_prefix(precision::k_variable_prefix);
  loaded.path = options.configs.front();
  return loaded;
}

void refuse_precision_flags(const RunOptions& options, std::string_view flag) {
  if (!options.policy && !options.rewrite) return;
  throw UserError(ErrorKind::config,
                  {options.policy ? "--policy" : "--rewrite", 0, 0, ""},
                  fmt::format("has no effect beside {}, which names the policies", flag));
}

void apply_logging(const RunOptions& options) {
  open_messages(options.color, options.log_file);
  treat_warnings_as_errors(options.strict);
  if (options.quiet || options.verbosity > 0) {
    set_log_level(options.quiet ? LogLevel::warning : LogLevel::debug);
  }
  print_warnings(unknown_variables());
}

data::ImageConversion image_conversion(const config::DataSpec& spec) {
  data::ImageConversion form;
  if (spec.image_size.size() == 2) {
    form.height = spec.image_size[0];
    form.width = spec.image_size[1];
  }
  form.channels = spec.channels.value_or(0);
  form.convert = spec.channels.has_value();
  form.resize = spec.resize;
  return form;
}

data::Dataset load_data(const LoadedConfig& loaded, bool verify) {
  data::DataOptions options = data_options(loaded);
  options.verify = verify;
  return data::load_dataset(options);
}

bool has_data(const LoadedConfig& loaded) { return data::find_dataset(data_options(loaded)); }

}  // namespace halfstep::app
