#include "study/bench.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "command.h"
#include "core/log.h"
#include "data/table.h"
#include "open_device.h"
#include "report/bench_report.h"
#include "report/bench_table.h"
#include "study/random_data.h"
#include "study_run.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

struct State {
  RunOptions run;
  std::optional<std::string> policies;
  std::int64_t warmup = 20, steps = 200, repeats = 5;
  bool profile = false;
  bool synthetic = false;
};

/// Random samples of the shape that the config's data has: by its name, or by looking at it.
data::Dataset random_data(const LoadedConfig& loaded) {
  constexpr std::int64_t k_batches = 4;
  const config::RunSpec& spec = loaded.spec;
  const std::int64_t samples = k_batches * spec.training.batch_size;
  const auto seed = static_cast<std::uint64_t>(spec.seed);
  const data::SetDef* set = spec.data.name ? data::find_set(*spec.data.name) : nullptr;
  if (set != nullptr && set->sample_shape[0] > 0 && set->classes > 0) {
    const auto& s = set->sample_shape;
    return study::random_dataset({s[0], s[1], s[2]}, set->classes, samples, seed);
  }
  const data::Dataset real = load_data(loaded);
  if (real.train.images.dtype() != DType::uint8 || real.train.labels.dtype() != DType::int32) {
    throw UserError(ErrorKind::config,
                    {"--synthetic", 0, 0, ""},
                    "stands for images of bytes with class numbers, not for this data");
  }
  return study::random_dataset(real.sample_shape, real.classes, samples, seed);
}

int bench(const State& state) {
  apply_logging(state.run);
  constexpr std::int64_t k_most_steps = 1'000'000'000;
  Diagnostics diagnostics;
  check_range(diagnostics, "--warmup", state.warmup, {0, k_most_steps});
  check_range(diagnostics, "--steps", state.steps, {1, k_most_steps});
  check_range(diagnostics, "--repeat", state.repeats, {1, 1000});
  diagnostics.throw_if_any();
  const LoadedConfig loaded = load_config(state.run);
  study::BenchOptions options;
  options.warmup = state.warmup;
  options.steps = state.steps;
  options.repeats = state.repeats;
  options.profile = state.profile;
  if (state.policies) {
    for (const std::string& word : study::policy_words(*state.policies, "--policies")) {
      options.variants.push_back(study::make_variant(loaded.spec, word, "--policies"));
    }
  } else {
    const bool rewrite = loaded.spec.precision.rewrite == config::Rewrite::automatic;
    options.variants.push_back({rewrite ? "rewrite" : loaded.spec.precision.policy, loaded.spec});
  }
  std::optional<report::RunDirectory> directory = study_directory(state.run, loaded.spec);

  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = state.synthetic ? random_data(loaded) : load_data(loaded);
  const report::RunInfo run = study_info(state.run, loaded.overrides, directory);
  const report::Json context = report::context(device);
  say_device(device);
  if (directory) directory->begin(loaded.spec, run, context);
  if (directory) keep_messages(directory->file("log.txt"));

  StudyDisplay display(progress_style(state.run.progress, state.run.quiet), "repeat", "");
  options.requests = train::take_request;
  const train::InterruptGuard signals;
  const train::BenchResult result = study::bench(options, dataset, device, display);
  if (!result.message.empty()) log_info("{}", result.message);
  const report::Json report = report::bench_report(
      result, display.facts(), run, context, report::config_block(loaded.spec, run.overrides));
  return finish_study(state.run, directory, report, report::bench_table(report));
}

std::function<int()> declare_bench(CLI::App& command) {
  const auto state = std::make_shared<State>();
  declare(command, state->run, {});
  command.add_option("--warmup", state->warmup, "steps that warm up, per repeat");
  command.add_option("--steps", state->steps, "steps measured, per repeat");
  command.add_option("--repeat", state->repeats, "fresh starts");
  command.add_option("--policies", state->policies, "comma-separated policies, measured in turns");
  command.add_flag("--profile", state->profile, "a second pass with the time of every op");
  command.add_flag("--synthetic", state->synthetic, "random samples of the data's shape");
  return [state] { return bench(*state); };
}

}  // namespace

const Command k_bench{"bench", "measure the time of training steps, nothing else", declare_bench};

}  // namespace halfstep::app
