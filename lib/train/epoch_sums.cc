#include "train/epoch_sums.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ranges.h"
#include "nn/metric.h"
#include "train/step_outcome.h"

namespace halfstep::train {

void EpochSums::keep(std::span<const std::string> names) {
  std::erase_if(metrics, [&](const auto& sum) { return !contains(names, sum.first); });
}

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

void set_metric_values(const std::map<std::string, double>& counters,
                       std::int64_t samples,
                       Metrics& values) {
  // The counters of a metric follow one another, since they begin with its name. Memory on the
  // stack, because a step allocates nothing.
  std::array<std::string_view, nn::k_max_counters> names;
  std::array<double, nn::k_max_counters> sums;
  for (auto it = counters.begin(); it != counters.end();) {
    const std::string_view metric = nn::metric_of(it->first);
    std::size_t count = 0;
    for (; it != counters.end() && count < sums.size() && nn::metric_of(it->first) == metric;
         ++it) {
      names[count] = it->first;
      sums[count++] = it->second;
    }
    const double value = nn::metric_value(
        std::span(names).first(count), std::span(sums).first(count), static_cast<double>(samples));
    const auto known =
        std::ranges::find_if(values, [&](const auto& entry) { return entry.first == metric; });
    if (known != values.end()) {
      known->second = value;
    } else {
      values.emplace(metric, value);
    }
  }
}

void EpochSums::running_means(Metrics& means) const {
  if (loss_samples == 0) {
    means.clear();
    return;
  }
  means["loss"] = loss / static_cast<double>(loss_samples);
  set_metric_values(metrics, samples, means);
}

EpochRecord EpochSums::record() const {
  EpochRecord record;
  record.train["loss"] = loss_samples > 0 ? loss / static_cast<double>(loss_samples) : std::nan("");
  set_metric_values(metrics, samples, record.train);
  record.skipped_steps = skipped;
  record.steps = steps;
  record.train_seconds = seconds;
  record.learning_rate = learning_rate;
  return record;
}

void EpochSums::fields(Fields& f) {
  f("loss", loss, "times samples, finite steps only");
  f("loss_samples", loss_samples, "samples of those steps");
  f("metrics", metrics, "by counter, summed over the samples");
  f("samples", samples, "in the epoch");
  f("steps", steps, "in the epoch");
  f("skipped", skipped, "steps whose update was skipped");
  f("seconds", seconds, "s in training steps");
  f("learning_rate", learning_rate, "of the last step");
}

}  // namespace halfstep::train
