#pragma once
// The report of a training run.

#include "report/blocks.h"
#include "report/context.h"
#include "report/history.h"
#include "train/session.h"

namespace halfstep::report {

/// The exit code for the end of a run, which may have missed the target of its config.
int exit_code(const config::RunSpec& spec, const train::TrainResult& result);
std::string_view name(train::Status status);

struct RunBlock {
  std::string id, directory;
  std::vector<std::string> command;
  std::string started_at, ended_at, resumed_from;
  std::int64_t restart_count = 0, rank_count = 1;
  std::vector<train::Segment> segments;
  std::optional<SlurmFields> slurm;
  double train_seconds = 0, wall_seconds = 0;
  void fields(Fields& f);
};

struct Reproducibility {
  std::int64_t seed = 0;
  bool deterministic = false;
  std::string init_hash, batch_order_hash, final_hash, state_hash;
  void fields(Fields& f);
};

struct Samples {
  std::int64_t seen = 0, trained = 0, retried = 0;
  void fields(Fields& f);
};

struct LossScale {
  std::string mode = "none";
  std::optional<double> initial, final;
  std::int64_t skipped_steps = 0, retried_steps = 0;
  std::vector<train::ScaleEvent> events;
  std::optional<std::int64_t> events_left_out;  ///< nothing in reports of earlier versions
  std::vector<train::SkippedStep> skips;
  std::optional<std::int64_t> skips_left_out;
  void fields(Fields& f);
};

struct TrainReport {
  static constexpr std::string_view k_kind = "train", k_doc = "a training run";
  std::string status;
  std::optional<std::int64_t> exit_code;  ///< nothing while running
  std::string message;
  RunBlock run;
  Context context;
  ConfigBlock config;
  analysis::Precision precision;
  Reproducibility reproducibility;
  History history;
  std::optional<StepColumns> step_history;  ///< nothing in reports of earlier versions
  Steps steps;
  Samples samples;
  std::optional<train::TimeToAccuracy> time_to_accuracy;
  StepTime step_time;
  Throughput throughput;
  std::optional<ParallelBlock> parallel;  ///< nothing of a run of one process
  train::MemoryUse memory;
  LossScale loss_scale;
  std::optional<Numerics> numerics;
  std::optional<MetricsBlock> test;
  std::optional<Classes> test_classes;
  std::optional<std::vector<OutputClasses>> test_outputs;
  std::vector<WarningBlock> warnings;
  NonfiniteMap nonfinite;
  void fields(Fields& f);

  /// The requested precision of a segment: a policy, "rewrite", or, where it is that of the end of
  /// the run, "rewrite:bfloat16".
  std::string policy_of(const train::Segment& segment) const;
  /// The precision of each segment in order, usually one; the last is that of `precision`.
  std::vector<std::string> policies() const;
};

/// The complete report of a training run. `running` while it is in progress.
TrainReport train_report(train::Session& session,
                         const train::TrainResult& result,
                         const RunInfo& run,
                         bool running);

}  // namespace halfstep::report
