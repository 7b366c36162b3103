#include "study/bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "command.h"
#include "config/warning_codes.h"
#include "core/log.h"
#include "number_flags.h"
#include "open_device.h"
#include "report/bench_report.h"
#include "report/run_files.h"
#include "report/tables.h"
#include "slurm.h"
#include "study/random_data.h"
#include "study_run.h"
#include "terminal.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

struct BenchFlags {
  RunOptions run;
  std::optional<std::string> policies;
  std::int64_t warmup = 20, steps = 200, repeats = 5;
  bool profile = false;
  bool synthetic = false;
};

/// The config's data, or random samples of the model's shapes if requested or if the data set is
/// not found.
data::Dataset bench_data(const LoadedConfig& loaded, bool synthetic, bool device) {
  // A device idles at the end of an epoch, while the host shuffles the next one: an epoch is as
  // long as one of MNIST, or 64 batches.
  constexpr std::int64_t k_batches = 64, k_device_samples = 48'000, k_host_batches = 4;
  const config::RunSpec& spec = loaded.spec;
  if (!synthetic && has_data(loaded)) return load_data(loaded);
  if (!synthetic) {
    print_warnings({config::warning(
        config::k_random_samples,
        spec.where("data"),
        "the data is not available; measuring on random samples of the model's shapes")});
  }
  const double share = 1 - spec.data.validation_split;
  const std::int64_t batch = spec.training.batch_size;
  const std::int64_t counted =
      device ? std::max(k_batches * batch, k_device_samples) : k_host_batches * batch;
  const auto samples = static_cast<std::int64_t>(std::ceil(static_cast<double>(counted) / share));
  return study::random_samples(
      study::describe_data(spec), samples, static_cast<std::uint64_t>(spec.seed));
}

int bench(const BenchFlags& state) {
  apply_logging(state.run);
  const LoadedConfig loaded = load_config(state.run);
  study::BenchOptions options;
  options.warmup = state.warmup;
  options.steps = state.steps;
  options.repeats = state.repeats;
  options.profile = state.profile;
  if (state.policies) {
    refuse_precision_flags(state.run, "--policies");
    for (const std::string& word : study::split_policies(*state.policies, "--policies")) {
      options.variants.push_back(study::make_variant(loaded.spec, word, "--policies"));
    }
  } else {
    const bool rewrite = loaded.spec.precision.rewrite == config::Rewrite::automatic;
    options.variants.push_back({rewrite ? "rewrite" : loaded.spec.precision.policy, loaded.spec});
  }
  std::optional<report::RunDirectory> directory =
      study_directory(state.run, loaded.spec, KeepStudy::as_requested);

  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = bench_data(loaded, state.synthetic, device.device != nullptr);
  check_warnings(state.run, options.variants, dataset, device);
  const report::RunInfo run = run_info(loaded.texts, loaded.overrides, directory);
  const report::Context context = report::context(device);
  print_device(device);
  if (directory) directory->begin(loaded.spec, run, context, false);
  if (directory) keep_messages(directory->file(report::k_log_file));

  StudyDisplay display(progress_options(state.run), "repeat", "");
  options.requests = requests_within_limit(loaded.spec.training);
  const train::InterruptGuard signals;
  report::BenchReport report = study::bench(options, dataset, device, display);
  if (!report.message.empty()) log(LogLevel::error, report.message);
  report::complete(report, run, context, report::config_block(loaded.spec, run.overrides));
  return finish_study(state.run, directory, report, report::bench_table(report));
}

std::function<int()> declare_bench(CLI::App& command) {
  const auto state = std::make_shared<BenchFlags>();
  declare(command, state->run, {.json = true, .run_dir = true, .progress = true, .strict = true});
  constexpr std::int64_t k_max_steps = 1'000'000'000;
  add_integer(
      command, "--warmup", state->warmup, {0, k_max_steps}, "steps that warm up, per repeat");
  add_integer(command, "--steps", state->steps, {1, k_max_steps}, "steps measured, per repeat");
  add_integer(command, "--repeat", state->repeats, {1, 1000}, "fresh starts");
  command.add_option("--policies", state->policies, "comma-separated policies, measured in turns");
  command.add_flag("--profile", state->profile, "a second pass with the time of every op");
  command.add_flag(
      "--synthetic", state->synthetic, "random samples of the model's shapes, no data set");
  return [state] {
    require_alone("bench");
    return bench(*state);
  };
}

}  // namespace

extern const Command k_bench{
    "bench", "measure the time of training steps, nothing else", declare_bench};

}  // namespace halfstep::app
