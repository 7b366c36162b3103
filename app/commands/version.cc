#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "backend/backend.h"
#include "command.h"
#include "report/build_info.h"

namespace halfstep::app {
namespace {

std::function<int()> declare_version(CLI::App&) {
  return [] {
    const report::BuildInfo build = report::build_info();
    fmt::print("halfstep {} ({}{}, {}, {})\noneDNN {}\n",
               build.version,
               build.git_commit.empty() ? "no commit" : build.git_commit.substr(0, 12),
               build.git_dirty ? "+changes" : "",
               build.build_type,
               build.compiler,
               backend::onednn_version());
    return 0;
  };
}

}  // namespace

const Command k_version{
    "version", "print the program's and its libraries' versions", declare_version};

}  // namespace halfstep::app
