#include "train/checkpoint_schedule.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "core/directory_lock.h"
#include "core/log.h"
#include "train/checkpoint.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

/// Without rules, a checkpoint of this size is not followed by the next one before this multiple of
/// the time that it took. On smaller ones no rule depends on a clock.
constexpr std::size_t k_large_bytes = std::size_t{16} << 20;
constexpr double k_share = 20;

}  // namespace

std::int64_t CheckpointSchedule::steps_to_next(std::int64_t ordinal) const {
  if (!every_.steps) return std::numeric_limits<std::int64_t>::max();
  return *every_.steps - ordinal % *every_.steps;
}

bool CheckpointSchedule::is_due(std::int64_t ordinal,
                                bool epoch_end,
                                const CheckpointSeconds& seconds) const {
  if (ordinal >= length_.steps) return false;
  const bool by_default = !every_.steps && !every_.minutes && !every_.epochs;
  const std::int64_t epochs = every_.epochs.value_or(by_default ? 1 : 0);
  const bool cheap = !by_default || seconds.since_last >= k_share * seconds.to_write;
  const bool by_epochs =
      epoch_end && epochs > 0 && (ordinal / length_.steps_per_epoch) % epochs == 0 && cheap;
  const bool by_steps = every_.steps && ordinal % *every_.steps == 0;
  return by_steps || by_epochs || is_due_by_time(seconds.since_last);
}

bool CheckpointSchedule::is_due_by_time(double since_last) const {
  return every_.minutes && since_last >= *every_.minutes * 60;
}

CheckpointWriter::CheckpointWriter(Session& session,
                                   const TrainOptions& options,
                                   TrainObserver& observer)
    : session_(session),
      saves_(options.saves && options.directory),
      directory_(options.directory),
      observer_(observer),
      copies_(session),
      last_(std::chrono::steady_clock::now()) {}

void CheckpointWriter::save(const GatheredState& whole, const RunState& run) {
  if (!saves_) return;
  const auto start = std::chrono::steady_clock::now();
  const std::string directory = directory_();
  const std::string path = save_checkpoint(directory, whole.state(), run.progress, whole.best());
  prune_checkpoints(directory, session_.spec().training.keep);
  to_write_ = whole.state().bytes() < k_large_bytes ? 0 : seconds_since(start);
  last_ = std::chrono::steady_clock::now();
  observer_.on_checkpoint(path);
}

std::string CheckpointWriter::save_as(std::string_view name,
                                      const GatheredState& whole,
                                      const RunState& run) {
  if (!saves_) return "";
  return save_checkpoint(directory_(), whole.state(), run.progress, whole.best(), name);
}

std::string CheckpointWriter::save_without(const comm::RankLost& lost, const RunState& run) {
  if (!directory_) return "";
  const bool first = session_.ranks()->rank() == lost.lowest_left();
  const std::string directory = directory_();
  try {
    // The lost rank holds the lock of the directory as long as it lives.
    std::optional<DirectoryLock> lock;
    if (first && !saves_) lock.emplace(directory);
    if (copies_.needed()) {
      copies_.save(lost, directory);
    } else if (saves_) {
      save({session_, run.best.weights(), true}, run);
    } else if (first) {
      save_checkpoint(directory, session_.state(), run.progress, run.best.weights());
    }
  } catch (const UserError& error) {
    log_warning("no checkpoint of the last step was written: {}", error.problems().front().message);
  }
  if (!first) return "";
  const std::int64_t ordinal = run.progress.counters.ordinal;
  const std::optional<std::int64_t> newest = newest_step(directory);
  if (!newest) return "; there is no checkpoint yet";
  if (*newest == ordinal) return fmt::format("; the checkpoint is that of step {}", *newest);
  return fmt::format(
      "; the newest checkpoint is that of step {}, {} before this one", *newest, ordinal - *newest);
}

CheckpointSeconds CheckpointWriter::seconds() const { return {seconds_since(last_), to_write_}; }

void CheckpointWriter::log_skipped_epoch() {
  if (std::exchange(logged_, true)) return;
  log_info(
      "the last checkpoint took {:.1f} s: the next one follows an epoch after {:.0f} s or more; "
      "training.checkpoint_every sets other times",
      to_write_,
      k_share * to_write_);
}

}  // namespace halfstep::train
