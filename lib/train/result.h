#pragma once
// The results of a run as plain values: the input of reports and comparisons.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "train/step_history.h"
#include "train/tensor_numerics.h"

namespace halfstep::train {

/// The first non-finite tensor of a step, found by a second run that checks each launch.
struct FirstNonfinite {
  std::string tensor;  ///< name of the node that produced it
  std::string op;
  std::string layer;
  std::string phase;
  std::string dtype;
  std::string kind;  ///< "inf" or "nan"
  std::int64_t count = 0;
  double finite_absmax = 0;  ///< largest finite magnitude in it
  bool loss_finite = true;   ///< whether the unscaled loss was finite
  void fields(Fields& f);
  bool operator==(const FirstNonfinite&) const = default;
};

/// A change of the loss scale, up or down.
struct ScaleEvent {
  std::int64_t step = 0;     ///< applied steps before it
  std::int64_t attempt = 0;  ///< which attempted step, from 1
  std::int64_t ordinal = 0;  ///< of the batch
  double from = 0;
  double to = 0;
  std::optional<FirstNonfinite> first_nonfinite;  ///< of every decrease
  void fields(Fields& f);
  bool operator==(const ScaleEvent&) const = default;
};

/// A step whose update was skipped.
struct SkippedStep {
  std::int64_t attempt = 0;
  std::int64_t ordinal = 0;
  bool retried = false;
  std::optional<FirstNonfinite> first_nonfinite;
  void fields(Fields& f);
  bool operator==(const SkippedStep&) const = default;
};

/// The part of a run in one process, from its start or a resume on.
struct Segment {
  std::int64_t first_ordinal = 0;  ///< batches drawn before it
  std::string started_at;          ///< UTC
  std::string host;
  std::string device;  ///< backend: cpu, cuda
  std::string isa;     ///< strongest instruction set of the CPU's kernels
  std::int64_t threads = 0;
  std::string policy;                ///< precision policy of the config
  std::string config_hash;           ///< of the resolved config
  std::string data_hash;             ///< of the training samples and their labels
  std::vector<std::string> changed;  ///< settings unlike those before: "path: before -> after"
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
  void fields(Fields& f);
  bool operator==(const Counters&) const = default;
};

/// Means over a set of samples: "loss" and each metric.
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
  double total = 0;      ///< from the request for the batch to the end of the update
  double data_wait = 0;  ///< waiting for and copying the batch
  double forward = 0;    ///< input, forward, loss and metrics
  double backward = 0;
  double finite_check = 0;  ///< unscaling and the check
  double optimizer = 0;     ///< clipping and updates
  std::int64_t samples = 0;
  bool counted = false;  ///< a full batch whose update was applied
  bool repeats = false;  ///< `total` is the mean over steps timed together, as in the sample before
};

enum class Status { completed, target_reached, stopped_early, interrupted, preempted, diverged };
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

struct Evaluation {
  Metrics metrics;
  Confusion confusion;
  std::vector<std::int64_t> predictions;  ///< class per sample, in file order
  double seconds = 0;
};

struct TrainResult {
  Status status = Status::completed;
  std::string message;  ///< why the run ended, for statuses other than completed
  Counters counters;
  std::vector<EpochRecord> history;
  StepHistory step_history;
  std::vector<ScaleEvent> scale_events;
  std::vector<SkippedStep> skips;
  std::int64_t scale_events_left_out = 0;  ///< see Progress
  std::int64_t skips_left_out = 0;
  std::optional<double> final_scale;
  double first_step_seconds = 0;
  std::vector<StepSample> steps;  ///< of this process, without the first step
  double train_seconds = 0, wall_seconds = 0;
  std::optional<TimeToAccuracy> time_to_accuracy;
  std::optional<Evaluation> test;
  std::string init_hash, batch_order_hash, final_hash;
  std::string state_hash;  ///< of all variables
  MemoryUse memory;
  NumericsSummary numerics;  ///< of the steps this process sampled
  std::string resumed_from;  ///< checkpoint path, "" for a fresh run
  std::vector<Segment> segments;
  std::vector<config::Warning> warnings;  ///< of the trainer
};

}  // namespace halfstep::train
