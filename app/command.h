#pragma once
// A subcommand is one file in commands/, which declares its flags on a CLI11 subcommand and returns
// the action to run when it is chosen,
//
//   extern const Command k_version{"version", "print versions", declare_version};
//
// plus its entry in commands/table.cc, which alone declares it.

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

/// All commands, in the order of the help.
std::span<const Command* const> command_table();

/// The program's version and build on one line, its libraries' versions on the next.
std::string version_text();

}  // namespace halfstep::app
