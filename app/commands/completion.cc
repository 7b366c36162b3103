#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "command.h"
#include "reference/print.h"

namespace halfstep::app {
namespace {

std::function<int()> declare_completion(CLI::App& command) {
  const auto shell = std::make_shared<std::string>();
  const CLI::App* program = command.get_parent();
  command.add_option("SHELL", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  return [program, shell] {
    fmt::print("{}", bash_completion(*program));
    return 0;
  };
}

}  // namespace

extern const Command k_completion{"completion",
                                  "print a script that completes commands and flags in a shell",
                                  declare_completion};

}  // namespace halfstep::app
