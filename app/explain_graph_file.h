#pragma once
// `explain --graph FILE`: the automatic rewrite alone, on a graph in the text form.

#include <string>
#include <vector>

#include "config/merge.h"

namespace CLI {
class App;
}

namespace halfstep::app {

struct GraphFileFlags {
  std::string path;
  std::string mode = "cuda";
  std::string level;
  std::string arch;
  int cuda_version = -1;  ///< -1: the default
  int cudnn_version = -1;
  bool strict = false;
  std::string format;  ///< table, json or dot
  /// precision.lists.<list>.<add|remove>=[Op,...] and precision.rewrite_rules=...
  std::vector<config::Override> settings;
};

void declare(CLI::App& command, GraphFileFlags& flags);

/// Prints the report; returns 0, or 2 with --strict when the rewrite failed.
/// Errors: UserError(config) for malformed files and flags.
int explain_graph_file(const GraphFileFlags& flags);

}  // namespace halfstep::app
