#pragma once

#include "report/context.h"
#include "train/session.h"
#include "train/step_time.h"

namespace halfstep::report {

/// The exit code a run's end stands for.
int exit_code(train::Status status, bool target_missed);
std::string_view name(train::Status status);

/// The whole report of a training run. `running` while it goes on.
Json train_report(train::Session& session,
                  const train::TrainResult& result,
                  const RunInfo& run,
                  bool running);

Json step_time_block(const train::StepTimeSummary& summary);
Json throughput_block(const train::StepTimeSummary& summary, double flops_per_step);
Json metrics_block(const train::Metrics& metrics);
/// One array per column: epoch, loss, metrics, val_*, learning rate, loss scale, seconds.
Json history_block(const std::vector<train::EpochRecord>& epochs,
                   const std::vector<std::string>& metrics);
Json time_to_accuracy_block(const std::optional<train::TimeToAccuracy>& time);
/// Accuracy per class and the confusion matrix; null without classes.
Json confusion_block(const train::Confusion& confusion,
                     const std::vector<std::string>& class_names);
Json memory_block(const train::MemoryUse& memory);

}  // namespace halfstep::report
