#include "report/export/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system.h"

namespace halfstep::report {

double start_of(const TrainReport& report) {
  const std::vector<train::Segment>& segments = report.run.segments;
  return unix_seconds(segments.empty() ? report.run.started_at : segments.front().started_at)
      .value_or(0);
}

std::int64_t batches_after(std::int64_t ordinal) {
  return ordinal < std::numeric_limits<std::int64_t>::max() ? ordinal + 1 : ordinal;
}

std::vector<EpochTime> epoch_times(const TrainReport& report) {
  const History& history = report.history;
  std::int64_t steps = 0;
  for (const std::int64_t count : history.steps) steps += count;
  // Every step draws a batch, so an epoch's share of the steps is its share of the samples.
  const double per_step =
      steps > 0 ? static_cast<double>(report.samples.seen) / static_cast<double>(steps) : 0;
  std::vector<EpochTime> times;
  EpochTime time;
  time.end = start_of(report);
  for (std::size_t i = 0; i < history.epoch.size(); ++i) {
    const std::int64_t first = time.steps;
    time.epoch = history.epoch[i];
    time.steps += history.steps[i];
    time.samples = std::llround(per_step * static_cast<double>(time.steps));
    time.start = time.end;
    time.trained = time.start + history.train_seconds[i];
    for (const train::Segment& segment : report.run.segments) {
      if (segment.first_ordinal < first || segment.first_ordinal >= time.steps) continue;
      const double begun = unix_seconds(segment.started_at).value_or(0);
      const double share = static_cast<double>(time.steps - segment.first_ordinal) /
                           static_cast<double>(history.steps[i]);
      if (segment.first_ordinal == first) time.start = std::max(time.start, begun);
      time.trained = std::max(time.trained, begun + share * history.train_seconds[i]);
    }
    time.end = time.trained + history.eval_seconds[i];
    times.push_back(time);
  }
  return times;
}

}  // namespace halfstep::report
