#include "train/step_history.h"

#include <algorithm>

namespace halfstep::train {
namespace {

/// Appends a point, or merges it into the last one when both are in the same interval.
void append(StepHistory& history,
            const StepPoint& point,
            std::int64_t count,
            std::span<const double> sums) {
  std::vector<StepPoint>& points = history.points;
  const auto interval_of = [&](const StepPoint& p) { return (p.step - 1) / history.interval; };
  if (points.empty() || interval_of(points.back()) != interval_of(point)) {
    points.push_back(point);
    history.samples.push_back(0);
    for (MetricSums& metric : history.metrics) metric.sums.push_back(0);
  } else {
    StepPoint& last = points.back();
    last.step = point.step;
    last.loss_sum += point.loss_sum;
    last.losses += point.losses;
    last.skipped += point.skipped;
    last.learning_rate = point.learning_rate;
    last.loss_scale = point.loss_scale;
  }
  history.samples.back() += count;
  for (std::size_t i = 0; i < sums.size(); ++i) history.metrics[i].sums.back() += sums[i];
}

}  // namespace

std::optional<double> StepPoint::loss() const {
  return losses > 0 ? std::optional(loss_sum / static_cast<double>(losses)) : std::nullopt;
}

void StepHistory::begin(std::span<const std::string> names) {
  if (!std::ranges::equal(names, metrics, {}, {}, &MetricSums::name)) {
    samples.clear();
    metrics.clear();
    for (const std::string& name : names) metrics.push_back({name, {}});
  }
  // One more than the limit: adding a point beyond it halves their number.
  const auto fit = [&](auto& list) {
    list.reserve(k_max_points + 1);
    list.resize(points.size());
  };
  fit(points);
  fit(samples);
  for (MetricSums& metric : metrics) fit(metric.sums);
}

void StepHistory::add(const StepPoint& batch, std::int64_t count, std::span<const double> sums) {
  append(*this, batch, count, sums);
  if (points.size() > k_max_points) *this = coarsened(k_max_points);
}

StepHistory StepHistory::coarsened(std::size_t max_points) const {
  StepHistory coarse = *this;
  std::vector<double> sums(metrics.size());
  while (coarse.points.size() > std::max<std::size_t>(max_points, 1)) {
    StepHistory next{coarse.interval * 2, {}};
    for (const MetricSums& metric : metrics) next.metrics.push_back({metric.name, {}});
    for (std::size_t i = 0; i < coarse.points.size(); ++i) {
      std::ranges::transform(
          coarse.metrics, sums.begin(), [&](const MetricSums& m) { return m.sums[i]; });
      append(next, coarse.points[i], coarse.samples[i], sums);
    }
    coarse = std::move(next);
  }
  return coarse;
}

std::int64_t step_history_interval(std::int64_t steps, std::int64_t steps_per_epoch) {
  constexpr auto k_max = static_cast<std::int64_t>(StepHistory::k_max_points);
  constexpr std::int64_t k_per_epoch = 20;
  const auto share = [](std::int64_t count, std::int64_t parts) {
    return count / parts + (count % parts != 0 ? 1 : 0);
  };
  return std::max<std::int64_t>(1,
                                std::min(share(steps, k_max), share(steps_per_epoch, k_per_epoch)));
}

void StepPoint::fields(Fields& f) {
  f("step", step, "batches drawn up to its end");
  f("loss_sum", loss_sum, "of the batches whose loss was finite");
  f("losses", losses, "how many those are");
  f("skipped", skipped, "batches whose update was skipped");
  f("learning_rate", learning_rate, "of the last batch");
  f("loss_scale", loss_scale, "after the last batch; null without scaling");
}

void MetricSums::fields(Fields& f) {
  f("name", name, "of the metric's counter");
  f("sums", sums, "over the samples of each point");
}

void StepHistory::fields(Fields& f) {
  f("interval", interval, {.doc = "batches of a point; the last one may have fewer", .min = 1});
  f("points", points, {.doc = "in order", .max_elements = k_max_points});
  f("samples", samples, {.doc = "of each point", .optional = true});
  f("metrics", metrics, {.doc = "of each point", .optional = true});
}

}  // namespace halfstep::train
