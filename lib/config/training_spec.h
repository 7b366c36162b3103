#pragma once
// The sections `training`, `report`, `device`, `parallel` and `slurm`.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// When to write a checkpoint; whichever comes first. Nothing given: after every epoch. The end of
/// training writes one always.
struct CheckpointEvery {
  std::optional<std::int64_t> steps;
  std::optional<double> minutes;
  std::optional<std::int64_t> epochs;

  void fields(Fields& f);
};

/// Ends training after the epoch that is the `patience`th in a row in which `monitor` is no better
/// than its best by more than `min_delta`; never after the first epoch. Patience 0 is like 1. A
/// value that is not finite is no improvement; epochs cut short do not count.
/// Source: Keras 3, EarlyStopping (stops when wait >= patience).
struct EarlyStopping {
  std::string monitor = "val_loss";
  std::int64_t patience = 0;
  double min_delta = 0;
  /// End with the weights and statistics of the best epoch, however many epochs there were; a run
  /// that ends because it reached its target keeps the weights that reached it.
  bool restore_best = false;

  void fields(Fields& f);
};

/// A metric and the value it is to reach.
struct Target {
  std::string metric;
  double value = 0;
  bool at_most = false;  ///< smaller is better (losses and errors)

  bool reached(double now) const { return at_most ? now <= value : now >= value; }
};

/// Reads `val_accuracy=0.97` (or `>=`, `<=`); a metric of losses or errors is to go below its
/// value. Errors: nothing when the text is not of this form.
std::optional<Target> parse_target(std::string_view text);

/// Whether smaller values of a metric are better: `loss`, `val_loss`, `error`, ...
bool smaller_is_better(std::string_view metric);

struct TrainingSpec {
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps;
  std::int64_t batch_size = 32;
  std::int64_t accumulate_steps = 1;  ///< parts of a step's samples, computed one after another
  std::optional<std::int64_t> validation_batch_size;  ///< absent: batch_size
  std::vector<NamedNumber> class_weight;              ///< by class name or number; else 1
  bool reset_states = false;                          ///< of stateful layers, in each epoch
  CheckpointEvery checkpoint_every;
  std::int64_t keep = 3;  ///< checkpoints
  bool deterministic = true;
  std::optional<EarlyStopping> early_stopping;
  std::optional<std::string> keep_best;  ///< the metric by which the best checkpoint is kept
  std::optional<std::string> target;     ///< parse_target accepts it
  bool stop_at_target = true;
  std::optional<double> time_limit;              ///< minutes; absent: that of the Slurm job
  std::optional<double> stop_before_time_limit;  ///< seconds

  void fields(Fields& f);
};

enum class NumericsMode { none, sample, full };

struct NumericsSpec {
  NumericsMode mode = NumericsMode::none;
  std::int64_t every = 100;  ///< steps

  void fields(Fields& f);
};

/// The values of `report.formats`.
inline constexpr std::array<std::string_view, 7> k_report_formats{
    "json", "csv", "markdown", "html", "junit", "dllogger", "mllog"};

struct ReportSpec {
  std::int64_t warmup_steps = 20;
  std::vector<std::string> formats{"json"};
  bool tensorboard = false;
  NumericsSpec numerics;

  void fields(Fields& f);
};

enum class DeviceKind { automatic, cpu, cuda };

/// How a GPU's libraries choose among their algorithms: by the library's heuristic, or by timing on
/// this GPU.
enum class Autotune { heuristic, measure };

struct DeviceSpec {
  DeviceKind kind = DeviceKind::automatic;
  std::int64_t index = 0;               ///< of several CUDA devices: `cuda:1`
  std::optional<std::int64_t> threads;  ///< absent: as many as affinity and cgroup allow
  Autotune autotune = Autotune::heuristic;
  bool recorded = true;                      ///< launch each step as one captured graph
  std::optional<std::string> tuning_folder;  ///< absent: halfstep's in the user's cache

  void fields(Fields& f);
};

/// The samples that training.batch_size counts.
enum class BatchOf { run, rank };

/// The variables that the ranks of a run divide.
enum class ShardOf { none, optimizer };

struct ParallelSpec {
  DType all_reduce_dtype = DType::float32;
  double bucket_mib = 4;
  double timeout = 60;
  BatchOf batch_of = BatchOf::run;
  bool sync_batch_norm = false;
  ShardOf shard = ShardOf::none;
  std::optional<std::int64_t> copy_every = 10;  ///< steps

  void fields(Fields& f);
};

enum class SlurmSignal { usr1, usr2, term };
enum class SlurmRequeue { exit, self };

struct SlurmSpec {
  SlurmSignal signal = SlurmSignal::usr1;
  SlurmRequeue requeue = SlurmRequeue::exit;

  void fields(Fields& f);
};

}  // namespace halfstep::config
