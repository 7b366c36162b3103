#pragma once
// Flags that the commands on a config share, and their conversion to a checked RunSpec and its data
// set.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/merge.h"
#include "config/run_spec.h"
#include "data/dataset.h"

namespace CLI {
class App;
}

namespace halfstep::app {

/// The setting of `--tensorflow`.
inline constexpr std::string_view k_rewrite_rules = "precision.rewrite_rules";

/// The flags as given on the command line.
struct RunOptions {
  std::vector<std::string> configs;
  std::vector<config::Override> settings;  ///< --set, --set-str and --unset, in their order
  std::optional<std::string> policy, rewrite, tensorflow, device, target, numerics;
  /// Numbers as text: the config's reader reports errors in them.
  std::optional<std::string> threads, batch_size, seed, epochs, max_steps, time_limit;
  std::string run_dir;
  bool json = false;
  bool allow_fallback = false;
  std::string progress = "auto";
  double progress_every = 30;  ///< seconds
  std::string color = "auto";
  int verbosity = 0;
  bool quiet = false;
  bool strict = false;
  std::string log_file;
};

/// The optional flags of a command besides those that choose and change a config.
struct RunFlags {
  bool batch_size = true;
  bool seed = true;
  bool training = false;  ///< --epochs, --max-steps, --target
  bool numerics = false;  ///< --numerics
  bool json = false;
  bool run_dir = false;
  bool progress = false;
  bool strict = false;
};

/// Declares the positional CONFIG, the flags for configs, messages and the device, and those of
/// `flags`.
void declare(CLI::App& command, RunOptions& options, RunFlags flags);

/// A config with all overrides applied.
struct LoadedConfig {
  config::RunSpec spec;
  std::vector<std::string> overrides;        ///< as written, for the report
  std::string path;                          ///< of the first file
  std::vector<std::string> texts;            ///< of all files, as given
  std::string data_source;                   ///< where a run found its data; "" when not known
  std::optional<data::TableEncoding> table;  ///< that a run was trained with
  std::optional<data::TextVocabulary> text;  ///< likewise
};

/// Reads the files, then the settings of the environment, then the flags, of which later ones win.
/// Checks everything that needs no data, including the model and its shapes, loss, optimizer and
/// metrics. Errors: UserError(config) with all problems.
LoadedConfig load_config(const RunOptions& options);

/// Refuses --policy and --rewrite beside `flag`, which names all policies. Errors:
/// UserError(config).
void refuse_precision_flags(const RunOptions& options, std::string_view flag);

/// Sets log file and colours, and the log level where a flag does.
void apply_logging(const RunOptions& options);

/// The conversion that a config declares for images.
data::ImageConversion image_conversion(const config::DataSpec& spec);

/// The options by which load_data loads.
data::DataOptions data_options(const LoadedConfig& loaded);

/// The data set of a config; `verify` compares its files with the published ones.
/// Errors: UserError(data).
data::Dataset load_data(const LoadedConfig& loaded, bool verify = false);

/// Whether all files of a config's data set are found.
/// Errors: UserError(config) for a name that no data set has.
bool has_data(const LoadedConfig& loaded);

}  // namespace halfstep::app
