#pragma once
// Removal of run directories by rule.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/run_reports.h"

namespace halfstep::report {

/// A run is selected when every given rule selects it; a damaged one only when its state is
/// requested.
struct PruneRules {
  /// Selects all but the newest `keep` runs of each folder of runs.
  std::optional<std::int64_t> keep;
  /// Selects runs that ended, or else began, more than this many days ago.
  std::optional<double> older_than_days;
  /// Selects runs in one of these states.
  std::vector<RunState> states;

  bool any() const { return keep || older_than_days || !states.empty(); }
};

struct PruneItem {
  RunEntry run;
  std::uint64_t bytes = 0;  ///< of its files
  std::string refusal;      ///< why it stays although it is selected; "" for one that goes
};

struct PrunePlan {
  std::string folder;
  std::vector<PruneItem> items;  ///< selected, oldest first
  /// Directories left over from an interrupted removal, and their size.
  std::vector<std::string> leftovers;
  std::uint64_t leftover_bytes = 0;

  std::uint64_t bytes() const;  ///< of all removable items
  std::int64_t removals() const;
};

/// The runs that the rules select, and which of them may be removed: whole run directories that no
/// process uses and that hold no file but those of a run. `now` is UTC, as utc_now() gives it.
PrunePlan plan_prune(const RunIndex& index, const PruneRules& rules, const std::string& now);

/// Removes the runs of the plan, and folders that are empty then. Everything is checked once more
/// under the lock of each directory, which is renamed before its files go: a directory that an
/// interruption leaves is no run any more, and the next prune removes it. `latest` links of removed
/// runs are set to the newest training run beside them, or removed. Refusals found here are added
/// to the plan. Errors: UserError(data) when a directory cannot be renamed or removed.
void prune(PrunePlan& plan);

/// The effect of the plan, or after prune() its result, as text and as the report of kind `prune`.
std::string prune_text(const PrunePlan& plan, bool done);
PruneReport prune_report(const PrunePlan& plan, bool done);

}  // namespace halfstep::report
