#pragma once
// `explain --passes`, `--dump-after` and `--skip-pass`: the compiler's passes on a config's step.

#include <set>
#include <string>
#include <vector>

#include "train/session.h"

namespace CLI {
class App;
}

namespace halfstep::app {

struct RunOptions;

struct PassFlags {
  bool list = false;
  std::vector<std::string> dump_after;  ///< names of passes, or "all"
  std::string dump_dir;
  std::vector<std::string> skip;

  bool given() const { return list || !dump_after.empty(); }
  std::set<std::string, std::less<>> skipped() const { return {skip.begin(), skip.end()}; }
};

void declare(CLI::App& command, PassFlags& flags);

/// Errors: UserError(config) for unknown passes, and for passes that cannot be skipped.
void check(const PassFlags& flags);

/// Runs the passes again on the session's training step, for `gpu` ("sm_70") when it is not "", and
/// prints a row for each pass (--passes) and the graph after those that --dump-after names;
/// --run-dir keeps the report. Errors: UserError(data) for files that cannot be written.
void explain_passes(const train::Session& session,
                    const std::string& gpu,
                    const PassFlags& flags,
                    const RunOptions& run,
                    bool json);

}  // namespace halfstep::app
