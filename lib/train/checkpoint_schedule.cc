#include "train/checkpoint_schedule.h"

#include <limits>
#include <utility>

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

CheckpointWriter::CheckpointWriter(std::function<std::string()> directory,
                                   std::int64_t keep,
                                   TrainObserver& observer)
    : directory_(std::move(directory)),
      keep_(keep),
      observer_(observer),
      last_(std::chrono::steady_clock::now()) {}

void CheckpointWriter::save(const WholeState& whole, const RunState& run) {
  if (!directory_) return;
  const auto start = std::chrono::steady_clock::now();
  const std::string directory = directory_();
  const std::string path = save_checkpoint(directory, whole.state(), run.progress, whole.best());
  prune_checkpoints(directory, keep_);
  to_write_ = whole.state().bytes() < k_large_bytes ? 0 : seconds_since(start);
  last_ = std::chrono::steady_clock::now();
  observer_.on_checkpoint(path);
}

std::string CheckpointWriter::save_as(std::string_view name,
                                      const WholeState& whole,
                                      const RunState& run) {
  if (!directory_) return "";
  return save_checkpoint(directory_(), whole.state(), run.progress, whole.best(), name);
}

CheckpointSeconds CheckpointWriter::seconds() const { return {seconds_since(last_), to_write_}; }

void CheckpointWriter::leave_out() {
  if (std::exchange(leaves_out_, true)) return;
  log_info(
      "the last checkpoint took {:.1f} s: the next one follows an epoch after {:.0f} s or more; "
      "training.checkpoint_every sets other times",
      to_write_,
      k_share * to_write_);
}

}  // namespace halfstep::train
