#include "train/epoch_sums.h"

#include <cmath>

#include "train/step_outcome.h"

namespace halfstep::train {

void EpochSums::add(const StepOutcome& step, std::span<const std::string> names) {
  const std::int64_t size = step.time.samples;
  if (std::isfinite(step.loss)) {
    loss += step.loss * static_cast<double>(size);
    loss_samples += size;
  }
  for (std::size_t i = 0; i < names.size(); ++i) metrics[names[i]] += step.metrics[i];
  samples += size;
  steps += 1;
  learning_rate = step.learning_rate;
  skipped += step.applied ? 0 : 1;
  seconds += step.time.total;
}

void EpochSums::running_means(Metrics& means) const {
  if (loss_samples == 0) {
    means.clear();
    return;
  }
  means["loss"] = loss / static_cast<double>(loss_samples);
  for (const auto& [name, sum] : metrics) means[name] = sum / static_cast<double>(samples);
}

EpochRecord EpochSums::record() const {
  EpochRecord record;
  record.train["loss"] = loss_samples > 0 ? loss / static_cast<double>(loss_samples) : std::nan("");
  for (const auto& [name, sum] : metrics) {
    record.train[name] = sum / static_cast<double>(samples);
  }
  record.skipped_steps = skipped;
  record.steps = steps;
  record.train_seconds = seconds;
  record.learning_rate = learning_rate;
  return record;
}

void EpochSums::fields(Fields& f) {
  f("loss", loss, "times samples, finite steps only");
  f("loss_samples", loss_samples, "samples of those steps");
  f("metrics", metrics, "times samples");
  f("samples", samples, "in the epoch");
  f("steps", steps, "in the epoch");
  f("skipped", skipped, "steps whose update was left out");
  f("seconds", seconds, "s in training steps");
  f("learning_rate", learning_rate, "of the last step");
}

}  // namespace halfstep::train
