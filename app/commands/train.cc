#include <CLI/CLI.hpp>
#include <memory>

#include "command.h"
#include "training_run.h"

namespace halfstep::app {
namespace {

std::function<int()> declare_train(CLI::App& command) {
  struct State {
    RunOptions run;
    TrainFlags train;
  };
  const auto state = std::make_shared<State>();
  declare(command,
          state->run,
          {.training = true,
           .numerics = true,
           .json = true,
           .run_dir = true,
           .progress = true,
           .strict = true});
  command.add_option("--resume",
                     state->train.resume.resume,
                     "auto (the run directory's newest checkpoint) or a checkpoint");
  command
      .add_option("--override-resume",
                  state->train.resume.allowed,
                  "PATH of a setting that may differ from the run's from here on")
      ->allow_extra_args(false);
  command.add_option("--time-limit",
                     state->run.time_limit,
                     "minutes from now, before which training saves and ends with 75");
  command.add_option(
      "--init-from", state->train.init_from, "a checkpoint whose weights to start from");
  command.add_flag("--dry-run",
                   state->train.dry_run,
                   "check everything, run one step, report the memory it needs");
  return [state] { return run_training(state->run, state->train); };
}

}  // namespace

extern const Command k_train{"train", "train a model and report on it", declare_train};

}  // namespace halfstep::app
