#pragma once
// Reports about the runs in a folder.

#include <string>
#include <vector>

#include "report/blocks.h"
#include "report/run_index.h"

namespace halfstep::report {

struct RunsReport {
  static constexpr std::string_view k_kind = "runs", k_doc = "the runs in a folder";
  std::string folder;
  std::vector<RunEntry> runs;
  std::vector<std::string> foreign;
  void fields(Fields& f);
};

struct BestRunReport {
  static constexpr std::string_view k_kind = "best_run", k_doc = "the best run in a folder";
  std::string folder, metric, direction, policy;
  double value = 0;
  std::int64_t compared = 0;
  RunEntry run;
  void fields(Fields& f);
};

struct RemovedRun {
  RunEntry run;
  std::uint64_t bytes = 0;
  void fields(Fields& f);
};
struct RetainedRun {
  RunEntry run;
  std::string reason;
  void fields(Fields& f);
};
struct PruneReport {
  static constexpr std::string_view k_kind = "prune", k_doc = "a removal of runs";
  std::string folder;
  bool dry_run = false;
  std::vector<RemovedRun> removed;
  std::vector<RetainedRun> kept;
  std::vector<std::string> leftovers;
  std::uint64_t bytes = 0;
  void fields(Fields& f);
};

}  // namespace halfstep::report
