#include "config/training_spec.h"

#include <fmt/format.h>

#include <array>

#include "config/data_spec.h"
#include "config/scalar.h"
#include "core/thread_pool.h"

namespace halfstep::config {
namespace {

constexpr std::array k_numerics_modes{Named{NumericsMode::none, "none"},
                                      Named{NumericsMode::sample, "sample"},
                                      Named{NumericsMode::full, "full"}};
constexpr std::array k_device_kinds{Named{DeviceKind::automatic, "auto"},
                                    Named{DeviceKind::cpu, "cpu"},
                                    Named{DeviceKind::cuda, "cuda"}};
constexpr std::array k_autotunes{Named{Autotune::heuristic, "heuristic"},
                                 Named{Autotune::measure, "measure"}};
constexpr std::array k_signals{Named{SlurmSignal::usr1, "SIGUSR1"},
                               Named{SlurmSignal::usr2, "SIGUSR2"},
                               Named{SlurmSignal::term, "SIGTERM"}};
constexpr std::array k_requeues{Named{SlurmRequeue::exit, "exit"},
                                Named{SlurmRequeue::self, "self"}};

constexpr std::array k_all_reduce_dtypes{Named{DType::float32, "float32"},
                                         Named{DType::bfloat16, "bfloat16"},
                                         Named{DType::float16, "float16"}};
constexpr std::array k_batches_of{Named{BatchOf::run, "run"}, Named{BatchOf::rank, "rank"}};
constexpr std::array k_shards{Named{ShardOf::none, "none"}, Named{ShardOf::optimizer, "optimizer"}};

}  // namespace

bool smaller_is_better(std::string_view metric) {
  return metric.ends_with("loss") || metric.ends_with("error") || metric.ends_with("perplexity");
}

std::optional<Target> parse_target(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  std::string_view metric = text.substr(0, equals);
  Target target;
  if (metric.ends_with('<') || metric.ends_with('>')) {
    target.at_most = metric.ends_with('<');
    metric.remove_suffix(1);
  } else {
    target.at_most = smaller_is_better(metric);
  }
  constexpr std::string_view k_name =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  if (metric.empty() || metric.find_first_not_of(k_name) != std::string_view::npos) {
    return std::nullopt;
  }
  const Parsed<double> value = to_number(Node::scalar(std::string(text.substr(equals + 1))));
  if (!value.value) return std::nullopt;
  target.metric = metric;
  target.value = *value.value;
  return target;
}

void CheckpointEvery::fields(Fields& f) {
  f.field(
      "steps",
      steps,
      {.doc = "A checkpoint is written whenever this many more batches have been drawn. [steps]",
       .min = 1});
  f.field("minutes",
          minutes,
          {.doc = "A checkpoint is written at the end of the step that is this long after the last "
                  "one. [minutes]",
           .above = 0});
  f.field("epochs",
          epochs,
          {.doc = "A checkpoint is written whenever this many more epochs have ended. [epochs]",
           .min = 1});
}

void EarlyStopping::fields(Fields& f) {
  f.field("monitor",
          monitor,
          {.doc = "The metric that decides: loss, a name in `metrics`, or one of these with val_ "
                  "before it, which needs data.validation_split."});
  f.field("patience",
          patience,
          {.doc = "Epochs in a row without improvement that end training. [epochs]", .min = 0});
  f.field("min_delta",
          min_delta,
          {.doc = "An epoch is an improvement when the monitor is better than its best by more "
                  "than this. [unit of the monitor]",
           .min = 0});
  f.field("restore_best",
          restore_best,
          {.doc = "Whether training ends with the weights of its best epoch."});
}

void TrainingSpec::fields(Fields& f) {
  // Batches are counted in 64 bits: epochs times batches of the largest data set must fit.
  f.field("epochs",
          epochs,
          {.doc = "Passes over the training samples. [epochs]", .min = 1, .max = 100'000'000});
  f.field("max_steps",
          max_steps,
          {.doc = "Training ends after this many batches, in whichever epoch; null: no such end. "
                  "[batches]",
           .min = 1});
  f.field(
      "batch_size",
      batch_size,
      {.doc = "Samples in one training step; the last batch of an epoch may be smaller. [samples]",
       .min = 1,
       .max = k_max_samples});
  f.field(
      "accumulate_steps",
      accumulate_steps,
      {.doc = "Parts in which the batch_size samples of a step are computed, one after another; "
              "their gradients are added in float32 before the one update, so that activations "
              "need the memory of a part. As gradient_accumulation_steps in Keras with batches of "
              "batch_size / accumulate_steps, except that schedules count updates here and batches "
              "there, and that moving statistics are set once, to the mean of those of the parts. "
              "A mean over the steps that a mask keeps is that of the batch. [parts]",
       .min = 1,
       .max = 1024});
  f.field("validation_batch_size",
          validation_batch_size,
          {.doc = "Samples in one batch of validation and test; null: batch_size. [samples]",
           .min = 1,
           .max = k_max_samples});
  f.field(
      "class_weight",
      class_weight,
      {.doc = "Factor of the loss of each sample in training, by the name of its class where the "
              "data has names of classes, as {cat: 2.5}, else by its class number, as {0: 1, 3: "
              "2.5}; other classes have 1. The sum of the losses is divided by the number of "
              "samples all the same. Metrics, validation and test have no weights.",
       .min = 0});
  f.field(
      "reset_states",
      reset_states,
      {.doc =
           "Whether the states of stateful layers are 0 at the beginning of each epoch, as where "
           "Keras's reset_states() is called there; false: they are kept."});
  f.section(
      "checkpoint_every",
      checkpoint_every,
      {.doc = "When a checkpoint is written, whichever comes first; nothing given: after every "
              "epoch, but one process lets 20 times as long pass as the last one took, where its "
              "weights and slots have 16 MiB or more. The end of training always writes one."});
  f.field(
      "keep",
      keep,
      {.doc = "The newest checkpoints that are kept on disk; older ones are deleted. [checkpoints]",
       .min = 1});
  f.field("deterministic",
          deterministic,
          {.doc = "Whether CUDA kernels whose results vary from run to run are avoided. The CPU's "
                  "kernels give the same bits in every run with the same number of threads on the "
                  "same instruction set."});
  f.section("early_stopping",
            early_stopping,
            {.doc = "Ends training when a metric stops improving; null: never."});
  f.field("keep_best",
          keep_best,
          {.doc = "The metric by which the best checkpoint is kept too, beside the newest ones; "
                  "null: none is."});
  f.field("target",
          target,
          {.doc = "A metric and its value, METRIC=VALUE, such as val_accuracy=0.97; metrics whose "
                  "names end in loss, error or perplexity must fall to it, others rise to it, and "
                  ">= or <= says so. A run that does not reach it ends with exit code 5."});
  f.field("stop_at_target",
          stop_at_target,
          {.doc = "Whether training ends after the epoch that reaches the target."});
  f.field("time_limit",
          time_limit,
          {.doc = "Training ends with a checkpoint and exit code 75 before the process is this "
                  "old; --resume auto continues from it. null: the limit is that of the Slurm job, "
                  "if stop_before_time_limit asks for it. [minutes]",
           .above = 0});
  f.field(
      "stop_before_time_limit",
      stop_before_time_limit,
      {.doc = "How long before the time limit training ends; null: 0 before time_limit, and the "
              "limit of a Slurm job is not looked up. It ends earlier where the longest step so "
              "far, or the validation of an epoch, might last longer than the rest. [s]",
       .min = 0});
}

void NumericsSpec::fields(Fields& f) {
  f.choice(
      "mode",
      mode,
      k_numerics_modes,
      {.doc = "Steps with statistics of 16-bit values: none, a sample of them (every), or all "
              "(full). They are written to numerics.jsonl and cost an extra pass over the batch."});
  f.field("every", every, {.doc = "Steps from one sampled step to the next. [steps]", .min = 1});
}

void ReportSpec::fields(Fields& f) {
  f.field("warmup_steps",
          warmup_steps,
          {.doc = "Steps after the first one that step times leave out, at most a fifth of the "
                  "counted steps. [steps]",
           .min = 0});
  static const std::string k_formats =
      fmt::format("Formats in which the report is written beside report.json: {}.",
                  fmt::join(k_report_formats, ", "));
  f.field("formats", formats, {.doc = k_formats});
  f.field("tensorboard",
          tensorboard,
          {.doc = "Whether a TensorBoard event file is written, with points by step and epoch."});
  f.section("numerics",
            numerics,
            {.doc = "Statistics of tensors on sampled steps.", .shorthand_key = "mode"});
}

void DeviceSpec::fields(Fields& f) {
  f.choice("kind",
           kind,
           k_device_kinds,
           {.doc = "Where the run computes; auto takes cuda where a driver and the plugin are "
                   "found, else cpu. `device: cuda:1` stands for kind cuda with index 1."});
  f.field("index",
          index,
          {.doc = "Number of the CUDA device, from 0 in the driver's order; for kind cuda alone.",
           .min = 0});
  f.field("threads",
          threads,
          {.doc = "CPU threads; null: as many as the affinity mask, the cgroup and a Slurm task "
                  "allow. [threads]",
           .min = 1,
           .max = k_max_threads});
  f.choice("autotune",
           autotune,
           k_autotunes,
           {.doc = "How cuBLASLt's and cuDNN's algorithms are chosen on cuda: by their own first "
                   "choice, or by timing them once per shape and keeping the fastest."});
  f.field("recorded",
          recorded,
          {.doc = "Whether a step on cuda is captured as one graph and launched as one; false "
                  "launches each kernel by itself, for profilers."});
  f.field("tuning_folder",
          tuning_folder,
          {.doc = "Folder in which `autotune: measure` keeps its times; null: halfstep in "
                  "XDG_CACHE_HOME or ~/.cache."});
}

void ParallelSpec::fields(Fields& f) {
  f.choice("all_reduce_dtype",
           all_reduce_dtype,
           k_all_reduce_dtypes,
           {.doc = "Dtype in which gradients travel between ranks; sums are accumulated in float32 "
                   "and rounded once, on GPUs rounded at each addition. 16 bits halve the bytes. "
                   "float16 gradients travel scaled by the loss scale, so that a sum that "
                   "overflows is a skipped step."});
  f.field("bucket_mib",
          bucket_mib,
          {.doc = "Gradients are summed in buckets of at least this size, or of a quarter of all "
                  "where that is less, the last layers' first, while those of the layers before "
                  "are computed. [mebibytes]",
           .max = 1 << 20,
           .above = 0});
  f.field(
      "timeout",
      timeout,
      {.doc = "A rank that waits longer for another one ends with exit code 8 and names it. [s]",
       .min = 1});
  f.choice("batch_of",
           batch_of,
           k_batches_of,
           {.doc = "run: the ranks share the batch_size samples of a step; rank: each has "
                   "batch_size samples."});
  f.field("sync_batch_norm",
          sync_batch_norm,
          {.doc = "Whether all layers batch_normalization take the statistics of the samples of "
                  "all ranks, as if each had `synchronized: true`."});
  f.choice("shard",
           shard,
           k_shards,
           {.doc = "optimizer: the ranks divide the optimizer's slots and the masters of the "
                   "weights; each updates its part, and all get the new weights, in 16 bits where "
                   "they are only read so (ZeRO's first stage). none: each rank updates all."});
  f.field("copy_every",
          copy_every,
          {.doc = "Steps between copies of the variables in memory, from which the ranks that are "
                  "left make a checkpoint when one is lost, where the variables do not survive it: "
                  "on GPUs and with `shard: optimizer`, where each rank also sends its slices to "
                  "the next one. null: no copies, and the newest checkpoint stays. [steps]",
           .min = 1});
}

void SlurmSpec::fields(Fields& f) {
  f.choice("signal",
           signal,
           k_signals,
           {.doc = "The signal by which Slurm announces the end of a job: the run writes a "
                   "checkpoint and ends with exit code 75. SIGTERM always does."});
  f.choice(
      "requeue",
      requeue,
      k_requeues,
      {.doc =
           "exit leaves requeueing to the batch script; self calls scontrol requeue for the job."});
}

}  // namespace halfstep::config
