#include <cmath>
#include <limits>

#include "config/training_spec.h"
#include "train/progress.h"

namespace halfstep::train {
namespace {

/// The epoch's value of `metric`, or NaN.
double value_of(const EpochRecord& record, const std::string& metric) {
  const bool validation = metric.starts_with("val_");
  const Metrics& metrics = validation ? record.validation : record.train;
  const auto it = metrics.find(validation ? metric.substr(4) : metric);
  return it == metrics.end() ? std::nan("") : it->second;
}

/// Updates `best` with the epoch; true when it is the best so far. NaN never is.
bool improves(const EpochRecord& record, const std::string& metric, double min_delta, Best& best) {
  const bool smaller = config::smaller_is_better(metric);
  const double now = value_of(record, metric);
  if (best.epoch == 0) {
    const double worst = std::numeric_limits<double>::infinity();
    best.value = smaller ? worst : -worst;
    best.epoch = record.epoch;
  }
  ++best.waited;
  const bool better = smaller ? now + min_delta < best.value : now - min_delta > best.value;
  if (better) best = {now, record.epoch, 0};
  return better;
}

bool reaches_target(const EpochRecord& record,
                    const config::Target& target,
                    double wall_seconds,
                    Progress& progress) {
  if (progress.time_to_accuracy && progress.time_to_accuracy->reached) return false;
  const bool reached = target.reached(value_of(record, target.metric));
  progress.time_to_accuracy = TimeToAccuracy{target.metric,
                                             target.value,
                                             reached,
                                             progress.counters.applied,
                                             record.epoch,
                                             progress.train_seconds,
                                             wall_seconds};
  return reached;
}

}  // namespace

EpochDecision evaluate_epoch(const EpochRecord& record,
                             const config::TrainingSpec& rules,
                             double wall_seconds,
                             Progress& progress) {
  EpochDecision decision;
  const auto target = rules.target ? config::parse_target(*rules.target) : std::nullopt;
  if (target) {
    decision.target_reached = reaches_target(record, *target, wall_seconds, progress);
  }
  if (record.partial) return decision;
  if (rules.keep_best) {
    decision.best_to_keep = improves(record, *rules.keep_best, 0, progress.keep_best);
  }
  if (rules.early_stopping) {
    const config::EarlyStopping& rule = *rules.early_stopping;
    Best& best = progress.early_stopping;
    const bool first = best.epoch == 0;
    decision.best_to_restore = improves(record, rule.monitor, rule.min_delta, best) || first;
    decision.stop = best.waited > 0 && best.waited >= rule.patience && record.epoch > 1;
  }
  return decision;
}

Best best_epoch(const std::vector<EpochRecord>& history, const std::string& metric) {
  Best best;
  for (const EpochRecord& record : history) {
    if (!record.partial) improves(record, metric, 0, best);
  }
  return best;
}

}  // namespace halfstep::train
