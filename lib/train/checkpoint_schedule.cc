#include "train/checkpoint_schedule.h"

#include <limits>

#include "train/checkpoint.h"
#include "train/step_time.h"

namespace halfstep::train {

std::int64_t CheckpointSchedule::steps_to_next(std::int64_t ordinal) const {
  if (!every_.steps) return std::numeric_limits<std::int64_t>::max();
  return *every_.steps - ordinal % *every_.steps;
}

bool CheckpointSchedule::is_due(std::int64_t ordinal, bool epoch_end, double seconds) const {
  if (ordinal >= length_.steps) return false;
  const bool by_default = !every_.steps && !every_.minutes && !every_.epochs;
  const std::int64_t epochs = every_.epochs.value_or(by_default ? 1 : 0);
  const bool by_epochs =
      epoch_end && epochs > 0 && (ordinal / length_.steps_per_epoch) % epochs == 0;
  const bool by_steps = every_.steps && ordinal % *every_.steps == 0;
  return by_steps || by_epochs || is_due_by_time(seconds);
}

bool CheckpointSchedule::is_due_by_time(double seconds) const {
  return every_.minutes && seconds >= *every_.minutes * 60;
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
  const std::string directory = directory_();
  const std::string path = save_checkpoint(directory, whole.state(), run.progress, whole.best());
  prune_checkpoints(directory, keep_);
  last_ = std::chrono::steady_clock::now();
  observer_.on_checkpoint(path);
}

std::string CheckpointWriter::save_as(std::string_view name,
                                      const WholeState& whole,
                                      const RunState& run) {
  if (!directory_) return "";
  return save_checkpoint(directory_(), whole.state(), run.progress, whole.best(), name);
}

double CheckpointWriter::seconds_since_last() const { return seconds_since(last_); }

}  // namespace halfstep::train
