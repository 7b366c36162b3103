#include "train/step_history.h"

#include <algorithm>

namespace halfstep::train {
namespace {

/// Appends a point, or merges it into the last one when both are in the same interval.
void append(std::vector<StepPoint>& points, const StepPoint& point, std::int64_t interval) {
  if (points.empty() || (points.back().step - 1) / interval != (point.step - 1) / interval) {
    points.push_back(point);
    return;
  }
  StepPoint& last = points.back();
  last.step = point.step;
  last.loss_sum += point.loss_sum;
  last.losses += point.losses;
  last.skipped += point.skipped;
  last.learning_rate = point.learning_rate;
  last.loss_scale = point.loss_scale;
}

}  // namespace

std::optional<double> StepPoint::loss() const {
  return losses > 0 ? std::optional(loss_sum / static_cast<double>(losses)) : std::nullopt;
}

void StepHistory::add(const StepPoint& batch) {
  append(points, batch, interval);
  if (points.size() > k_most_points) *this = coarsened(k_most_points);
}

StepHistory StepHistory::coarsened(std::size_t most) const {
  StepHistory coarse = *this;
  while (coarse.points.size() > std::max<std::size_t>(most, 1)) {
    StepHistory next{coarse.interval * 2, {}};
    for (const StepPoint& point : coarse.points) append(next.points, point, next.interval);
    coarse = std::move(next);
  }
  return coarse;
}

std::int64_t step_history_interval(std::int64_t steps, std::int64_t steps_per_epoch) {
  constexpr auto k_most = static_cast<std::int64_t>(StepHistory::k_most_points);
  constexpr std::int64_t k_per_epoch = 20;
  const auto share = [](std::int64_t count, std::int64_t parts) {
    return count / parts + (count % parts != 0 ? 1 : 0);
  };
  return std::max<std::int64_t>(
      1, std::min(share(steps, k_most), share(steps_per_epoch, k_per_epoch)));
}

void StepPoint::fields(Fields& f) {
  f("step", step, "batches drawn up to its end");
  f("loss_sum", loss_sum, "of the batches whose loss was finite");
  f("losses", losses, "how many those are");
  f("skipped", skipped, "batches whose update was left out");
  f("learning_rate", learning_rate, "of the last batch");
  f("loss_scale", loss_scale, "after the last batch; null without scaling");
}

void StepHistory::fields(Fields& f) {
  f("interval", interval, {.doc = "batches of a point; the last one may have fewer", .min = 1});
  f("points", points, {.doc = "in order", .most = k_most_points});
}

}  // namespace halfstep::train
