#pragma once
// The command line as a manual page and as a shell's completion, from the declared commands.

#include <string>

namespace CLI {
class App;
}

namespace halfstep::app {

/// The manual page halfstep(1) in roff, of the program with all its commands.
std::string manual_page(const CLI::App& program);

/// A script for bash that completes commands, flags, and the listed values of flags.
std::string bash_completion(const CLI::App& program);

}  // namespace halfstep::app
