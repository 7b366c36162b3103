#pragma once
// The runs in a folder, `runs/` by default: the kind of each, how far it got and how it ended, read
// from its own files without changing any of them.

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"
#include "train/result.h"

namespace halfstep::report {

/// The state of a run. `running`: a process holds its directory. `interrupted`: stopped by a
/// signal, preempted, or killed before it wrote how it ended. `damaged`: a file that every run has
/// is missing or cannot be read.
enum class RunState { running, completed, failed, interrupted, damaged };

std::span<const std::string_view> names_of(RunState);
std::string_view name(RunState state);
/// The state of that name. Errors: UserError(config) at `flag` with the nearest name.
RunState run_state_named(std::string_view word, const std::string& flag);

/// A `status` of a report.
struct Ending {
  std::string_view status;
  RunState state;
  std::array<int, 2> run;    ///< exit codes of training: usually, and where the target was missed
  std::array<int, 3> study;  ///< those of a comparison or benchmark, the usual one first
};
/// Values instead of an exit code: null in the report; an ending that studies do not have.
inline constexpr int k_null_code = -1, k_no_code = -2;

/// Errors: InternalError for an unknown status.
const Ending& ending_named(std::string_view status);
const Ending& ending_of(train::Status status);

/// The statuses of runs, `running` and the names of train::Status, and those of studies.
std::span<const std::string_view> run_statuses();
std::span<const std::string_view> study_statuses();

/// The measurements of one policy in a comparison or benchmark.
struct PolicyResult {
  std::string policy;
  std::map<std::string, double> metrics;     ///< by the name with the split, means over the seeds
  std::optional<double> step_time, speedup;  ///< median in ms; over the baseline or first policy
  void fields(Fields& f);
};

struct RunEntry {
  std::string path;  ///< of its directory, relative to the working directory
  std::string name;  ///< relative to the searched folder
  std::string kind;  ///< train, compare or bench; "" where no file says
  RunState state = RunState::damaged;
  std::string status;  ///< of its report; "" without one
  std::string note;    ///< why it is damaged, or the evidence for its state; mostly ""
  /// Requested precision, `rewrite:bfloat16` for a rewrite; for a comparison or benchmark all
  /// policies, for a run resumed under another policy those in turn.
  std::vector<std::string> policies;
  std::optional<std::int64_t> epochs;  ///< completed ones; none for benchmarks
  /// Values by metric and split: test_accuracy, val_loss, ... A training run has those after its
  /// last epoch, a comparison the means of its baseline.
  std::map<std::string, double> metrics;
  std::string metric;  ///< the main one among `metrics`; "" if there are none
  /// Median in ms: for a comparison the baseline's, for a benchmark the first policy's.
  std::optional<double> step_time;
  /// The results of a comparison or benchmark, in the order of `policies`.
  std::vector<PolicyResult> results;
  std::string listed_policy;  ///< the one of `results` that `metrics` and `step_time` are of, or ""
  std::string started_at;     ///< UTC; "" if no file holds it
  std::string ended_at;       ///< UTC, or when its report was last written; "" without a report

  std::optional<double> value() const;                        ///< of `metric`
  const PolicyResult* result(std::string_view policy) const;  ///< null if there is none
  void fields(Fields& f);
};

/// The kinds of runs: train, compare and bench.
std::span<const std::string_view> run_kinds();

/// Whether a folder looks like the directory of a run, complete or damaged.
bool looks_like_run(const std::filesystem::path& directory);

/// The entry of a run, from the files of its directory; a file that cannot be read makes the run
/// `damaged`.
RunEntry read_run_entry(const std::filesystem::path& directory, std::string name);

struct RunIndex {
  std::string folder;
  std::vector<RunEntry> runs;  ///< by name
  /// The outermost folders that contain no run, by path.
  std::vector<std::string> foreign;
  /// Run directories that an interrupted removal has renamed (prune_runs.h).
  std::vector<std::string> leftovers;
};

/// Prefix of the directory of a run during its removal; no run has such a name.
inline constexpr std::string_view k_removed_prefix = ".removed-";

/// Searches `folder` and three levels of folders below it. Symbolic links, such as `latest`, and
/// hidden folders are skipped. Errors: UserError(data) when the folder does not exist or is a run
/// directory itself.
RunIndex find_runs(const std::string& folder);

/// The run named by `word`: its name below the folder, the last component of it, a folder of runs
/// for the newest of them ("mnist_cnn"), or the path of a run directory. Errors: UserError(config)
/// for no match, with the nearest name, and for several.
const RunEntry& resolve_run(const RunIndex& index, const std::string& word);

}  // namespace halfstep::report
