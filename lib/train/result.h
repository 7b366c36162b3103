#pragma once
// The results of a run as plain values: the input of reports and comparisons.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "train/scale_events.h"
#include "train/step_history.h"
#include "train/tensor_numerics.h"

namespace halfstep::train {

/// The part of a run in one process, from its start or a resume on.
struct Segment {
  std::int64_t first_ordinal = 0;  ///< batches drawn before it
  std::string started_at;          ///< UTC
  std::string host;
  std::string device;  ///< backend: cpu, cuda
  std::string isa;     ///< strongest instruction set of the CPU's kernels
  std::int64_t threads = 0;
  std::int64_t ranks = 1;            ///< processes that trained together
  std::string policy;                ///< precision policy of the config
  std::string config_hash;           ///< of the resolved config
  std::string data_hash;             ///< of the training samples and their labels
  std::vector<std::string> changed;  ///< settings unlike those before: "path: before -> after"
  std::string machine() const;       ///< decides bits and times: "cpu (avx2, 2 threads)"
  void fields(Fields& f);
  bool operator==(const Segment&) const = default;
};

struct Counters {
  std::int64_t attempted = 0;  ///< forward and backward passes run
  std::int64_t applied = 0;    ///< updates applied
  std::int64_t ordinal = 0;    ///< batches drawn
  std::int64_t skipped = 0;
  std::int64_t retried = 0;
  std::int64_t samples_seen = 0;
  std::int64_t samples_trained = 0;
  std::int64_t samples_retried = 0;  ///< as many times as they were
  void fields(Fields& f);
  bool operator==(const Counters&) const = default;
};

/// Values over a set of samples: "loss" and each metric.
using Metrics = std::map<std::string, double>;

/// The record of one epoch.
struct EpochRecord {
  std::int64_t epoch = 0;  ///< from 1
  bool partial = false;    ///< ended before its last batch
  Metrics train;
  Metrics validation;  ///< empty without a validation set
  double learning_rate = 0;
  std::optional<double> loss_scale;
  std::int64_t skipped_steps = 0;
  std::int64_t steps = 0;
  double train_seconds = 0;
  double eval_seconds = 0;
  void fields(Fields& f);
  bool operator==(const EpochRecord&) const = default;
};

/// Wall time of one step, in seconds.
struct StepSample {
  double total = 0;  ///< from the request for the batch to the end of the update; of steps that a
                     ///< device does as one, their mean
  double data_wait = 0;  ///< waiting for and copying the batch
  double forward = 0;    ///< input, forward, loss and metrics
  double backward = 0;
  double finite_check = 0;  ///< unscaling and the check
  double optimizer = 0;     ///< clipping and updates
  double waited = 0;        ///< of these, waiting for other ranks
  double summing = 0;       ///< in which a sum over the ranks was under way
  double sent_bytes = 0;    ///< to other ranks
  double saved_bytes = 0;   ///< by 16 bits instead of float32
  std::int64_t samples = 0;
  bool counted = false;  ///< a full batch whose update was applied
};

enum class Status {
  completed,
  target_reached,
  stopped_early,
  interrupted,
  preempted,
  diverged,
  rank_lost  ///< another rank of the run ended or did not answer
};
std::span<const std::string_view> names_of(Status);

struct TimeToAccuracy {
  std::string metric;
  double target = 0;
  bool reached = false;
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double train_seconds = 0;
  double wall_seconds = 0;
  void fields(Fields& f);
  bool operator==(const TimeToAccuracy&) const = default;
};

struct MemoryUse {
  std::size_t state_bytes = 0;  ///< weights, slots, statistics, persistent packed weights
  std::size_t arena_bytes = 0;  ///< planned: activations, gradients, workspaces
  std::size_t data_bytes = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t device_allocated_bytes = 0;  ///< at most; 0 on the CPU
  std::uint64_t device_in_use_bytes = 0;     ///< at most, libraries and other processes included
  void fields(Fields& f);
};

/// Per-class results of an evaluation.
struct Confusion {
  std::int64_t classes = 0;
  std::vector<std::int64_t> counts;  ///< [label][prediction]

  std::int64_t at(std::int64_t label, std::int64_t prediction) const {
    return counts[static_cast<std::size_t>(label * classes + prediction)];
  }
};

/// The classes that an output of the model predicts; nothing for real values.
struct OutputPredictions {
  std::string output;  ///< empty where the model has one
  Confusion confusion;
  std::vector<std::int64_t> predictions;  ///< class per label, in file order
};

struct Evaluation {
  Metrics metrics;
  std::vector<OutputPredictions> outputs;  ///< in the order of the model's
  double seconds = 0;
};

/// The record of a run, which its checkpoints store and its result has.
struct TrainRecord {
  Counters counters;
  std::vector<EpochRecord> history;
  StepHistory step_history;              ///< empty in checkpoints of old versions
  std::vector<ScaleEvent> scale_events;  ///< both lists by append_bounded() of train/progress.h
  std::vector<SkippedStep> skips;
  std::int64_t scale_events_left_out = 0;
  std::int64_t skips_left_out = 0;
  std::optional<TimeToAccuracy> time_to_accuracy;
  double train_seconds = 0;
  double wall_seconds = 0;
  std::string init_hash;
  std::string message;  ///< why the run ended, for statuses other than completed
  /// One for each process so far; checkpoints of old versions have none.
  std::vector<Segment> segments;
  bool operator==(const TrainRecord&) const = default;
};

struct TrainResult : TrainRecord {
  Status status = Status::completed;
  std::optional<double> final_scale;
  double first_step_seconds = 0;
  std::vector<StepSample> steps;  ///< of this process, without the first step
  std::optional<Evaluation> test;
  std::string batch_order_hash, final_hash;
  std::string state_hash;  ///< of all variables
  MemoryUse memory;
  NumericsSummary numerics;               ///< of the steps this process sampled
  std::string resumed_from;               ///< checkpoint path, "" for a fresh run
  std::vector<config::Warning> warnings;  ///< of the trainer
};

}  // namespace halfstep::train
