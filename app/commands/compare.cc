#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <memory>

#include "command.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/ranges.h"
#include "environment.h"
#include "number_flags.h"
#include "open_device.h"
#include "report/finished_runs.h"
#include "report/run_files.h"
#include "report/run_index.h"
#include "report/tables.h"
#include "slurm.h"
#include "study/compare_summary.h"
#include "study/shards.h"
#include "study_run.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

struct CompareFlags {
  RunOptions run;
  std::optional<std::string> policies, baseline;
  std::int64_t seeds = 3;
  std::vector<std::string> given;  ///< names of the flags that were given
  std::string margin = "0.2pp";
  std::vector<std::string> fail_if;
  std::string shard, merge;  ///< K/N, and the directory of the shards
  bool array = false;
  std::vector<std::string> more_runs;  ///< after the first, which takes the position of the config
  bool no_run_dir = false;
};

[[noreturn]] void fail(std::string flag, std::string message, std::string hint = {}) {
  throw UserError(
      ErrorKind::config, {std::move(flag), 0, 0, ""}, std::move(message), std::move(hint));
}

/// Whether --run-dir is on the command line: HALFSTEP_RUN_DIR, which sets it too, is no flag.
bool run_dir_named(const CompareFlags& state) {
  return !state.run.run_dir.empty() && environment("HALFSTEP_RUN_DIR") != state.run.run_dir;
}

/// The configs of all policies; the baseline is among them and named in `options`.
void choose_policies(const CompareFlags& state,
                     const config::RunSpec& spec,
                     study::CompareOptions& options) {
  std::vector<std::string> words{"float32", "mixed_bfloat16", "mixed_float16"};
  std::string flag = "--policies";
  if (state.policies) {
    refuse_precision_flags(state.run, flag);
    words = study::split_policies(*state.policies, flag);
  } else if (state.run.policy) {
    flag = "--policy";
    words = {*state.run.policy};
  } else if (spec.precision.rewrite == config::Rewrite::automatic) {
    flag = "--rewrite";
    words = {"rewrite"};
  }
  options.baseline = state.baseline.value_or(
      contains(words, "float32") || words.size() == 1 ? "float32" : words.front());
  if (!contains(words, options.baseline)) words.insert(words.begin(), options.baseline);
  for (const std::string& word : words) {
    const bool added = word == options.baseline && state.baseline;
    options.variants.push_back(study::make_variant(spec, word, added ? "--baseline" : flag));
  }
  if (words.size() < 2) {
    fail(flag, fmt::format("there is nothing to compare {} with", words.front()));
  }
}

/// The shard of this task of a Slurm array.
study::Shard array_shard() {
  const auto number = [](std::string_view name) {
    const std::optional<std::int64_t> value = environment_number(name);
    if (!value) {
      fail("--array",
           fmt::format("this is not a task of a Slurm array: {} is not set", name),
           "sbatch --array=0-8, or --shard K/N without Slurm");
    }
    return *value;
  };
  const std::int64_t task = number("SLURM_ARRAY_TASK_ID"), count = number("SLURM_ARRAY_TASK_COUNT");
  const std::int64_t first = environment_number("SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::int64_t step = environment_number("SLURM_ARRAY_TASK_STEP").value_or(1);
  const std::int64_t index = (task - first) / std::max<std::int64_t>(step, 1) + 1;
  return study::parse_shard(fmt::format("{}/{}", index, count), "--array");
}

std::optional<study::Shard> requested_shard(const CompareFlags& state) {
  if (state.shard.empty() && !state.array) return std::nullopt;
  const std::string flag = state.array ? "--array" : "--shard";
  if (state.array && !state.shard.empty()) fail("--array", "excludes --shard");
  if (state.no_run_dir || state.run.run_dir.empty()) {
    fail(flag, "needs --run-dir, the directory that all shards share");
  }
  if (!state.fail_if.empty()) fail("--fail-if", "is for --merge: a shard has no result");
  if (state.run.json) fail("--json", "is for --merge: a shard has no report");
  return state.array ? array_shard() : study::parse_shard(state.shard, flag);
}

int train_one_shard(const CompareFlags& state,
                    const study::Shard& shard,
                    const LoadedConfig& loaded,
                    study::CompareOptions& options,
                    const data::Dataset& dataset,
                    const backend::Backend& device) {
  print_device(device);
  StudyDisplay display(
      progress_options(state.run), "round", study::plan_of(options, dataset).headline);
  options.requests = requests_within_limit(loaded.spec.training);
  const train::InterruptGuard signals;
  const train::Status status =
      study::train_shard(options,
                         shard,
                         state.run.run_dir,
                         loaded.spec,
                         report::config_block(loaded.spec, loaded.overrides),
                         dataset,
                         device,
                         display);
  clear_progress();
  if (status != train::Status::completed)
    log_info("stopped on request: unfinished runs are discarded");
  return report::ending_named(report::name(status)).study[0];
}

int compare_policies(const CompareFlags& state) {
  require_alone("compare");
  const std::optional<study::Shard> shard = requested_shard(state);
  study::CompareOptions options;
  options.seeds = state.seeds;
  Diagnostics diagnostics;
  study::collect_problems(diagnostics, [&] { options.margin = study::parse_margin(state.margin); });
  study::collect_problems(diagnostics, [&] { options.gates = study::parse_gates(state.fail_if); });
  diagnostics.throw_if_any();
  // The variants select policy and rewrite: those of the config are ignored, except for its rewrite
  // where nothing else is requested.
  RunOptions given = state.run;
  if (given.policy && given.rewrite == "auto") fail("--policy", "excludes --rewrite auto");
  given.policy.reset();
  if (given.rewrite == "auto") given.policy = "float32";
  const LoadedConfig loaded = load_config(given);
  if (loaded.spec.seed > std::numeric_limits<std::int64_t>::max() - state.seeds) {
    fail("--seeds",
         fmt::format("there are fewer than {} seeds from {} on", state.seeds, loaded.spec.seed));
  }
  choose_policies(state, loaded.spec, options);
  if (state.no_run_dir && run_dir_named(state))
    fail("--no-run-dir", "--run-dir asks for the opposite");
  std::optional<report::RunDirectory> directory = study_directory(
      state.run, loaded.spec, state.no_run_dir || shard ? KeepStudy::never : KeepStudy::by_default);

  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = load_data(loaded);
  // Checked before a run begins in the directory: a gate must fit the comparison.
  const std::string headline = study::plan_of(options, dataset).headline;
  check_warnings(state.run, options.variants, dataset, device);
  if (shard) return train_one_shard(state, *shard, loaded, options, dataset, device);
  const report::RunInfo run = run_info(loaded.texts, loaded.overrides, directory);
  const report::Context context = report::context(device);
  print_device(device);
  if (directory) directory->begin(loaded.spec, run, context, false);
  if (directory) keep_messages(directory->file(report::k_log_file));

  StudyDisplay display(progress_options(state.run), "seed", headline);
  options.requests = requests_within_limit(loaded.spec.training);
  const train::InterruptGuard signals;
  report::CompareReport report = study::compare(options, dataset, device, display);
  report::complete(report, run, context, report::config_block(loaded.spec, run.overrides));
  const int exit_code = finish_study(state.run, directory, report, report::compare_table(report));
  if (!report.message.empty()) log(LogLevel::error, report.message);
  return exit_code;
}

/// Flags of training do not apply to runs that are finished.
void refuse_training_flags(const CompareFlags& state) {
  static constexpr std::array<std::string_view, 14> k_fitting{"--baseline",
                                                              "--merge",
                                                              "--margin",
                                                              "--fail-if",
                                                              "--json",
                                                              "--strict",
                                                              "--progress",
                                                              "--progress-every",
                                                              "--color",
                                                              "--verbose",
                                                              "--quiet",
                                                              "--log-file",
                                                              "--config",
                                                              "RUN"};
  Diagnostics diagnostics;
  for (const std::string& flag : state.given) {
    const bool from_environment = flag == "--run-dir" && !run_dir_named(state);
    if (contains(k_fitting, flag) || from_environment) continue;
    diagnostics.error({flag, 0, 0, ""}, "does not apply to finished runs");
  }
  diagnostics.throw_if_any();
}

/// Metrics that all finished runs have that did not diverge.
std::vector<std::string> common_metrics(const std::vector<report::FinishedRun>& runs) {
  std::vector<const report::ComparedRunBlock*> sound;
  for (const report::FinishedRun& f : runs) {
    if (!f.run.diverged()) sound.push_back(&f.run);
  }
  std::vector<std::string> names;
  if (sound.empty()) return names;
  const auto add = [&](const std::string& split, const auto& metrics) {
    if (!metrics) return;
    for (const auto& [name, value] : *metrics) names.push_back(split + name);
  };
  add("test_", sound.front()->test);
  add("val_", sound.front()->val);
  add("train_", sound.front()->train);
  std::erase_if(names, [&](const std::string& name) {
    return !std::ranges::all_of(
        sound, [&](const report::ComparedRunBlock* run) { return run->metric(name).has_value(); });
  });
  return names;
}

int compare_finished(const CompareFlags& state, const std::vector<std::string>& paths) {
  refuse_training_flags(state);
  if (paths.size() < 2) fail("RUN", "needs at least two runs, or a config to train with");
  const std::vector<report::FinishedRun> finished = report::read_finished_runs(paths);
  study::SummaryOptions options;
  std::vector<study::RunRecord> records;
  for (const report::FinishedRun& f : finished) {
    options.policies.push_back(f.run.policy);
    records.push_back({f.run, {}, {}, {}});
  }
  options.paired = false;
  options.margin = study::parse_margin(state.margin);
  options.baseline = state.baseline.value_or(options.policies.front());
  if (!contains(options.policies, options.baseline)) {
    fail("--baseline",
         fmt::format("no run is named '{}'", options.baseline),
         did_you_mean(options.baseline, options.policies));
  }
  options.metrics = common_metrics(finished);
  // As for trained policies: other metrics differ in unit and direction.
  options.headline = "train_loss";
  for (const char* metric :
       {"train_accuracy", "val_loss", "val_accuracy", "test_loss", "test_accuracy"}) {
    if (contains(options.metrics, metric)) options.headline = metric;
  }
  const std::vector<study::Gate> conditions = study::parse_gates(state.fail_if);
  study::check_gates(conditions, options);

  report::CompareReport report = study::summarise(records, options);
  report.differences = report::config_differences(finished);
  report.notes = report::mismatch_notes(finished, options.headline);
  for (std::string& note : study::comparison_notes(report)) report.notes.push_back(std::move(note));
  for (const study::Gate& gate : conditions) {
    report.gates.push_back(study::evaluate_gate(gate, options, report));
  }
  report::complete(report,
                   run_info({}, {}, std::nullopt),
                   report::context(backend::cpu_backend(available_processors())),
                   std::nullopt);
  std::optional<report::RunDirectory> none;
  return finish_study(state.run, none, report, report::compare_table(report));
}

int merge(const CompareFlags& state) {
  if (!state.run.configs.empty() || state.baseline) {
    fail(state.baseline ? "--baseline" : "CONFIG",
         "is that of the shards, in the directory of --merge");
  }
  refuse_training_flags(state);
  study::CompareOptions options;
  options.margin = study::parse_margin(state.margin);
  options.gates = study::parse_gates(state.fail_if);
  study::MergedComparison merged = study::merge_shards(state.merge, options);
  RunOptions given = state.run;
  given.configs = {(std::filesystem::path(state.merge) / study::k_shared_config_file).string()};
  const LoadedConfig loaded = load_config(given);
  std::optional<report::RunDirectory> directory;
  directory.emplace(state.merge, loaded.spec);
  const report::RunInfo run = run_info(loaded.texts, merged.config.overrides, directory);
  directory->begin(loaded.spec, run, merged.context, false);
  report::complete(merged.report, run, merged.context, std::move(merged.config));
  const int exit_code =
      finish_study(state.run, directory, merged.report, report::compare_table(merged.report));
  if (!merged.report.message.empty()) log(LogLevel::error, merged.report.message);
  return exit_code;
}

int compare(const CompareFlags& state) {
  apply_logging(state.run);
  if (!state.merge.empty()) return merge(state);
  std::vector<std::string> paths = state.run.configs;
  paths.insert(paths.end(), state.more_runs.begin(), state.more_runs.end());
  if (paths.empty()) fail("", "compare needs a CONFIG, or at least two finished RUNs");
  const auto runs = std::ranges::count_if(paths, report::names_run);
  if (runs == std::ssize(paths)) return compare_finished(state, paths);
  if (runs == 0 && state.more_runs.empty()) return compare_policies(state);
  fail("CONFIG",
       "takes one config, or finished runs (directories or report.json files)",
       "further configs follow -c");
}

std::function<int()> declare_compare(CLI::App& command) {
  const auto state = std::make_shared<CompareFlags>();
  declare(command,
          state->run,
          {.training = true, .json = true, .run_dir = true, .progress = true, .strict = true});
  command.get_option("--config")
      ->description("YAML config to train with; after -c any number, a later one wins");
  command.add_option(
      "RUN", state->more_runs, "finished runs instead of a CONFIG: directories, report.json files");
  command.add_option("--policies",
                     state->policies,
                     "comma-separated: float32, mixed_bfloat16, mixed_float16, rewrite:bfloat16, "
                     "rewrite:float16, ...");
  command.add_option("--baseline", state->baseline, "the policy that the others are compared with");
  add_integer(
      command, "--seeds", state->seeds, {1, 1000}, "seeds per policy, from the config's own on");
  command.add_flag("--no-run-dir",
                   state->no_run_dir,
                   "keep no report; without this it is kept in a directory under runs/");
  command.add_option("--shard",
                     state->shard,
                     "K/N: train the Kth of N parts of the runs, in a --run-dir that all share");
  command.add_flag("--array", state->array, "the same as a task of a Slurm array");
  command.add_option(
      "--merge", state->merge, "DIR of shards: the report of the comparison that they trained");
  command.add_option("--margin", state->margin, "largest difference that does not matter: 0.2pp");
  command
      .add_option("--fail-if",
                  state->fail_if,
                  "exit 5 when true: 'mixed_float16.accuracy.delta_ci_low < -0.3pp'")
      ->allow_extra_args(false);
  return [state, &command] {
    for (const CLI::Option* option : command.get_options()) {
      if (option->count() > 0) state->given.push_back(option->get_name());
    }
    return compare(*state);
  };
}

}  // namespace

extern const Command k_compare{
    "compare", "train under several policies and compare them, or compare runs", declare_compare};

}  // namespace halfstep::app
