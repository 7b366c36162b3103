#pragma once
// The progress of a run: the state besides the variables that a resumed run needs to continue bit
// for bit, and the rules at the end of an epoch: target, best epochs, early stopping.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/epoch_sums.h"
#include "train/result.h"

namespace halfstep::config {
struct TrainingSpec;
}

namespace halfstep::train {

/// The best complete epoch so far, for early stopping and keep-best.
struct Best {
  double value = 0;         ///< infinite while no epoch had a finite value
  std::int64_t epoch = 0;   ///< 0: none yet
  std::int64_t waited = 0;  ///< epochs without improvement since then

  void fields(Fields& f);
  bool operator==(const Best&) const = default;
};

/// Appends to a list that keeps its first and its last thousand entries, so that the state and the
/// report of a run have a bounded size; counts the entries dropped in between.
template <class T>
void append_bounded(std::vector<T>& list, T entry, std::int64_t& omitted) {
  constexpr std::size_t k_each = 1000;
  if (list.size() == 2 * k_each) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(k_each));
    ++omitted;
  }
  list.push_back(std::move(entry));
}

struct Progress : TrainRecord {
  EpochSums sums;
  std::int64_t consecutive_skips = 0;
  Best early_stopping;
  Best keep_best;
  std::optional<Status> finished;
  bool restored = false;  ///< the weights have been restored from the best epoch

  void fields(Fields& f);
  bool operator==(const Progress&) const = default;
};

struct EpochDecision {
  bool target_reached = false;  ///< in this epoch, for the first time
  bool best_to_keep = false;    ///< the best epoch so far by `keep_best`
  bool best_to_restore =
      false;          ///< the best so far by the monitor of early stopping, or the first epoch
  bool stop = false;  ///< the patience of early stopping is exhausted
};

/// Evaluates `record` by the config's rules and updates their state in `progress`. A partial epoch
/// is compared with the target only. Units: `wall_seconds` is the time since the run began.
EpochDecision evaluate_epoch(const EpochRecord& record,
                             const config::TrainingSpec& rules,
                             double wall_seconds,
                             Progress& progress);

/// The best of the complete epochs by a metric, as `keep_best` would have found it.
Best best_epoch(const std::vector<EpochRecord>& history, const std::string& metric);

/// Progress as JSON text and back.
std::string to_json(const Progress& progress);
/// Errors: UserError(data) naming `path` when the text is no valid progress, or when a counter is
/// negative, above 2^53 or inconsistent with the others.
Progress progress_from_json(const std::string& text, const std::string& path);

}  // namespace halfstep::train
