#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "command.h"
#include "version_text.h"

namespace halfstep::app {
namespace {

std::function<int()> declare_version(CLI::App&) {
  return [] {
    fmt::print("{}\n", version_text());
    return 0;
  };
}

}  // namespace

const Command k_version{
    "version", "print the program's and its libraries' versions", declare_version};

}  // namespace halfstep::app
