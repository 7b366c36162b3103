#include "used_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "config/differences.h"
#include "config/outputs.h"
#include "config/warning_codes.h"
#include "core/files.h"
#include "report/run_files.h"
#include "study/random_data.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

namespace fs = std::filesystem;

/// Keys that change the function that the weights compute.
constexpr std::array<std::string_view, 10> k_model_keys{"model",
                                                        "loss",
                                                        "data.scale",
                                                        "data.text.tokens",
                                                        "data.text.column",
                                                        "data.text.lowercase",
                                                        "data.layout",
                                                        "data.image_size",
                                                        "data.channels",
                                                        "data.resize"};

/// The directory of the run that `path` belongs to: itself, or the parent of a checkpoint or its
/// files.
std::optional<std::string> run_directory(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::weakly_canonical(path, error);
  if (error) return std::nullopt;
  for (int level = 0; level < 4 && !folder.empty(); ++level) {
    if (fs::is_regular_file(folder / report::k_resolved_config_file, error)) {
      // The path itself, if it is the directory itself.
      return level == 0 ? path : folder.string();
    }
    folder = folder.parent_path();
  }
  return std::nullopt;
}

/// The settings below one of `keys` whose values differ between two configs.
std::vector<config::Difference> differences(const config::RunSpec& run,
                                            const config::RunSpec& spec,
                                            std::span<const std::string_view> keys) {
  std::vector<config::Difference> found = config::differences(run, spec);
  std::erase_if(found, [&](const config::Difference& d) {
    return std::ranges::none_of(keys,
                                [&](std::string_view key) { return config::within(d.path, key); });
  });
  return found;
}

void check_against_run(const config::RunSpec& spec, const std::string& directory) {
  const config::RunSpec run = report::read_run_spec(directory);
  Diagnostics diagnostics;
  for (const config::Difference& d : differences(run, spec, k_model_keys)) {
    // The run refused images of another size: to accept them changes none of its results.
    const bool takes_more = (d.path == "data.resize" && d.before == "none") ||
                            (d.path == "data.channels" && d.before == "null");
    if (takes_more) continue;
    Where where = spec.where(d.path);
    diagnostics.error(where,
                      fmt::format("is {}, but the run {} has {}", d.after, directory, d.before),
                      where.file.empty() ? "the config leaves it to its default" : "");
  }
  diagnostics.throw_if_any();
  constexpr std::array<std::string_view, 1> k_precision{"precision"};
  std::vector<config::Warning> warnings;
  for (const config::Difference& d : differences(run, spec, k_precision)) {
    const Where where = spec.where(d.path);
    // Positions without a line are flags and settings.
    if (where.line == 0 && !where.file.empty()) continue;
    warnings.push_back(
        config::warning(config::k_other_precision,
                        where,
                        fmt::format("is {}, but the run {} had {}", d.after, directory, d.before)));
  }
  print_warnings(warnings);
}

/// Class names of the config instead of those that the run was trained with.
void name_classes(data::Dataset& dataset, const config::RunSpec& spec) {
  Diagnostics reported;  // by load_config
  const std::vector<config::TrainedOutput> outputs = config::trained_outputs(spec, reported);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].class_names.empty()) continue;
    if (i < dataset.outputs.size()) {
      dataset.outputs[i].class_names = outputs[i].class_names;
    } else {
      dataset.class_names.clear();
      data::name_classes(dataset, outputs[i].class_names, spec.where("data.class_names"));
    }
  }
}

bool is_run(const std::string& word) {
  std::error_code error;
  return fs::is_directory(word, error) || word.ends_with(".safetensors");
}

}  // namespace

UsedRun load_used_run(const RunOptions& options, const std::string& checkpoint) {
  RunOptions files = options;
  std::vector<std::string> runs;
  std::erase_if(files.configs, [&](const std::string& word) {
    if (is_run(word)) runs.push_back(word);
    return is_run(word);
  });
  if (runs.size() > 1) {
    throw UserError(ErrorKind::config,
                    {"RUN", 0, 0, ""},
                    fmt::format("one run is needed, got {}", fmt::join(runs, ", ")));
  }
  UsedRun used;
  used.checkpoint = !checkpoint.empty() ? checkpoint : runs.empty() ? "" : runs.front();
  const std::string named = runs.empty() ? checkpoint : runs.front();
  const std::optional<std::string> directory = named.empty() ? std::nullopt : run_directory(named);
  if (files.configs.empty() && !named.empty()) {
    if (!directory) {
      throw UserError(ErrorKind::data,
                      {named, 0, 0, ""},
                      fmt::format("does not belong to a run: no {} is in it or above it",
                                  report::k_resolved_config_file),
                      "give the config as well");
    }
    files.configs.push_back((fs::path(*directory) / report::k_resolved_config_file).string());
  }
  used.config = load_config(files);
  if (!directory) return used;
  check_against_run(used.config.spec, *directory);
  const std::string data = (fs::path(*directory) / report::k_run_data_file).string();
  std::error_code error;
  if (fs::exists(data, error)) {
    used.data = report::read_run_data(data);
    name_classes(*used.data, used.config.spec);
    used.config.data_source = used.data->source;
    used.config.table = used.data->table;
    used.config.text = used.data->text;
    used.data->inputs = study::describe_data(used.config.spec).inputs;
  }
  return used;
}

UsedRun load_trained_run(const RunOptions& options, const std::string& checkpoint) {
  if (options.configs.empty() && checkpoint.empty()) {
    throw UserError(ErrorKind::config,
                    {"RUN", 0, 0, ""},
                    "is missing: name the directory of a run, as in runs/mnist_cnn/latest");
  }
  UsedRun used = load_used_run(options, checkpoint);
  if (!used.checkpoint.empty()) return used;
  throw UserError(ErrorKind::config,
                  {"RUN", 0, 0, ""},
                  "is missing: a config alone has no weights",
                  "name a run directory, or a checkpoint with --checkpoint");
}

data::Dataset shapes_of(const UsedRun& run) {
  const config::RunSpec& spec = run.config.spec;
  if (!run.data) return load_data(run.config);
  const double share = 1 - spec.data.validation_split;
  const auto samples =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(spec.training.batch_size) / share)) +
      1;
  return study::random_samples(*run.data, samples, static_cast<std::uint64_t>(spec.seed));
}

void keep_report(const RunOptions& options, std::string_view file, const report::Json& report) {
  if (options.run_dir.empty()) return;
  make_folder(options.run_dir);
  write_file_atomically((fs::path(options.run_dir) / file).string(), report::dump(report));
}

}  // namespace halfstep::app
