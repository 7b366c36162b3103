#pragma once
// The history of a run by epoch and by step, and the rates of its steps.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "report/blocks.h"

namespace halfstep::report {

/// The value, or NaN: reports store numbers that are not finite as null.
double real(const std::optional<double>& value);

/// One value per epoch in every column.
struct History {
  std::vector<std::int64_t> epoch;
  std::deque<bool> partial;
  Column loss;
  std::vector<std::pair<std::string, Column>> metrics;  ///< val_ before those of validation
  Column learning_rate, loss_scale;
  std::vector<std::int64_t> skipped_steps, steps;
  std::vector<double> train_seconds, eval_seconds;

  void fields(Fields& f);
  /// "loss" and the names of the metrics, in order.
  std::vector<std::string> metric_names() const;
  /// The column of a metric or of "loss"; null where there is none.
  const Column* metric(std::string_view name) const;
  std::int64_t completed_epochs() const;
};
History history_block(const std::vector<train::EpochRecord>& epochs,
                      const std::vector<std::string>& metrics);
std::vector<train::EpochRecord> read_history(const History& history);
/// "the target val_accuracy=0.97 was not reached: the best was 0.953, in epoch 3"
std::string missed_target(const train::TimeToAccuracy& target, const History& history);

/// The run by step, one value for each interval in every column.
struct StepColumns {
  std::int64_t interval = 1;
  std::vector<std::int64_t> step;
  Column loss, learning_rate, loss_scale;
  std::vector<std::pair<std::string, Column>> metrics;  ///< none in reports of earlier versions
  std::vector<std::int64_t> skipped_steps;
  void fields(Fields& f);
  /// As History::metric().
  const Column* metric(std::string_view name) const;
};
StepColumns step_columns(const train::StepHistory& history);
/// A history with the values of `columns`, which hold means without the number of losses and
/// samples behind them: each interval has one sample, whose loss and metrics are the means. A
/// metric that is null although other values of its interval are not was not finite: it is NaN.
/// Metrics such as f1 lose their counters, so that coarsened() takes the mean of their values.
train::StepHistory read_step_history(const StepColumns& columns);

using train::StepTime;
using train::StepTimeHistogram;

/// Rates at the median step time.
struct Throughput {
  std::optional<double> total_ips, compute_ips;
  double flops_per_step = 0;
  std::optional<double> achieved_tflops, mfu, peak_tflops;
  std::string peak_source;
  std::optional<double> predicted_ms;  ///< of a step on a GPU (analysis/gpu_prediction.h)
  void fields(Fields& f);
};
Throughput throughput_block(const train::StepTimeSummary& summary,
                            double flops_per_step,
                            const backend::Backend& backend);

}  // namespace halfstep::report
