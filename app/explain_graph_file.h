#pragma once
// `explain --graph FILE`: the automatic rewrite alone, on a graph in the text form.

#include <cstdint>
#include <optional>
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
  std::optional<std::int64_t> cuda_version, cudnn_version;
  std::string format;  ///< table, json or dot
  /// precision.lists.<list>.<add|remove>=[Op,...] and precision.rewrite_rules=...
  std::vector<config::Override> settings;
};

void declare(CLI::App& command, GraphFileFlags& flags);

/// Prints the report; returns 0, or 2 and an error on stderr when the rewrite failed.
/// Errors: UserError(config) for malformed files and flags.
int explain_graph_file(const GraphFileFlags& flags);

}  // namespace halfstep::app
