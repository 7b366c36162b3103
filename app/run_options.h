#pragma once
// Flags that the commands on a config share, and what becomes of them: a checked RunSpec and its
// data set.

#include <optional>
#include <string>
#include <vector>

#include "config/merge.h"
#include "config/run_spec.h"
#include "data/dataset.h"

namespace CLI {
class App;
}

namespace halfstep::app {

/// The flags as given.
struct RunOptions {
  std::vector<std::string> configs;
  std::vector<config::Override> settings;  ///< --set, --set-str and --unset, in their order
  std::optional<std::string> policy, rewrite, device, target, numerics;
  /// Numbers as written: the config's reader says what is wrong with them.
  std::optional<std::string> threads, batch_size, seed, epochs, max_steps;
  std::string run_dir;
  bool json = false;
  bool allow_fallback = false;
  std::string progress = "auto";
  std::string color = "auto";
  int verbosity = 0;
  bool quiet = false;
  std::string log_file;
};

/// Which of the flags a command takes.
struct RunFlags {
  bool training = false;  ///< --epochs, --max-steps, --target
};

/// Declares the positional CONFIG and the common flags.
void declare(CLI::App& command, RunOptions& options, RunFlags flags);

/// A config with all that was laid over it.
struct LoadedConfig {
  config::RunSpec spec;
  std::vector<std::string> overrides;  ///< as written, for the report
  std::string path;                    ///< of the first file
  std::vector<std::string> texts;      ///< of all files, as given
};

/// Reads the files, the environment's settings and the flags, in this order of precedence.
/// Errors: UserError(config) with everything that is wrong.
LoadedConfig load_config(const RunOptions& options);

/// Sets log level, log file and colours.
void apply_logging(const RunOptions& options);

/// The data set of a config. Errors: UserError(data).
data::Dataset load_data(const LoadedConfig& loaded);

}  // namespace halfstep::app
