#pragma once
// A subcommand is one file in commands/ plus one entry in command_table(): it declares its flags on
// a CLI11 subcommand and returns the action to run when it is chosen.

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace halfstep::app {

struct Command {
  std::string_view name;
  std::string_view doc;
  /// Declares flags and returns the action, whose result is the exit code.
  std::function<int()> (*declare)(CLI::App& command);
};

extern const Command k_bench, k_compare, k_completion, k_config, k_data, k_doctor, k_eval,
    k_explain, k_help, k_model, k_predict, k_report, k_runs, k_train, k_tune, k_verify_resume,
    k_version;

/// In the order of the help.
std::span<const Command* const> command_table();

/// The program's version and build on one line, its libraries' versions on the next.
std::string version_text();

}  // namespace halfstep::app
