#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "backend/backend.h"
#include "command.h"
#include "report/context.h"

namespace halfstep::app {
namespace {

std::function<int()> declare_version(CLI::App&) {
  return [] {
    fmt::print("{}\n", version_text());
    return 0;
  };
}

}  // namespace

std::string version_text() {
  const report::BuildInfo build = report::build_info();
  return fmt::format("halfstep {} ({}{}, {}, {})\noneDNN {}",
                     build.version,
                     build.git_commit.empty() ? "no commit" : build.git_commit.substr(0, 12),
                     build.git_dirty ? "+changes" : "",
                     build.build_type,
                     build.compiler,
                     backend::onednn_version());
}

extern const Command k_version{
    "version", "print the program's and its libraries' versions", declare_version};

}  // namespace halfstep::app
