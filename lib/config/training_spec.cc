#include "config/training_spec.h"

#include <array>

#include "config/scalar.h"

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

}  // namespace

bool smaller_is_better(std::string_view metric) {
  return metric.ends_with("loss") || metric.ends_with("error");
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
  constexpr std::string_view k_name = "abcdefghijklmnopqrstuvwxyz0123456789_.";
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
  f.field("steps", steps, {.doc = "optimizer steps", .min = 1});
  f.field("minutes", minutes, {.doc = "of wall time", .above = 0});
  f.field("epochs", epochs, {.doc = "epochs", .min = 1});
}

void EarlyStopping::fields(Fields& f) {
  f.field("monitor", monitor, {.doc = "the metric to watch"});
  f.field("patience",
          patience,
          {.doc = "epochs in a row without improvement that end training", .min = 0});
  f.field("min_delta", min_delta, {.doc = "what counts as an improvement", .min = 0});
  f.field("restore_best", restore_best, {.doc = "end with the weights of the best epoch"});
}

void TrainingSpec::fields(Fields& f) {
  // Batches are counted in 64 bits: epochs times batches of the largest data set must fit.
  f.field(
      "epochs", epochs, {.doc = "passes over the training samples", .min = 1, .max = 100'000'000});
  f.field("max_steps", max_steps, {.doc = "end after so many optimizer steps", .min = 1});
  f.field("batch_size", batch_size, {.doc = "samples in a step", .min = 1});
  f.field("validation_batch_size",
          validation_batch_size,
          {.doc = "samples in a batch of evaluation; null: batch_size", .min = 1});
  f.section("checkpoint_every",
            checkpoint_every,
            {.doc = "when to save, whichever comes first; nothing given: after every epoch"});
  f.field("keep", keep, {.doc = "the newest checkpoints that stay", .min = 1});
  f.field("deterministic", deterministic, {.doc = "the same numbers in every run"});
  f.section("early_stopping", early_stopping, {.doc = "end when a metric stops improving"});
  f.field("keep_best", keep_best, {.doc = "also keep the checkpoint that is best by this metric"});
  f.field("target", target, {.doc = "what to reach: val_accuracy=0.97"});
  f.field("stop_at_target", stop_at_target, {.doc = "end once the target is reached"});
}

void NumericsSpec::fields(Fields& f) {
  f.choice("mode", mode, k_numerics_modes, {.doc = "which steps get statistics of their tensors"});
  f.field("every", every, {.doc = "steps between samples", .min = 1});
}

void ReportSpec::fields(Fields& f) {
  f.field("warmup_steps", warmup_steps, {.doc = "steps that timing leaves out", .min = 0});
  f.field("formats", formats, {.doc = "files to write beside report.json"});
  f.field("tensorboard", tensorboard, {.doc = "write event files"});
  f.section("numerics", numerics, {.doc = "statistics of tensors", .bare = "mode"});
}

void DeviceSpec::fields(Fields& f) {
  f.choice("kind", kind, k_device_kinds, {.doc = "auto: cuda where there is one"});
  f.field("index", index, {.doc = "of several CUDA devices", .min = 0});
  f.field(
      "threads", threads, {.doc = "of the CPU; null: as many as allowed", .min = 1, .max = 4096});
  f.choice(
      "autotune",
      autotune,
      k_autotunes,
      {.doc = "of cuda; measure: time the libraries' algorithms once and remember the fastest"});
  f.field(
      "recorded",
      recorded,
      {.doc = "of cuda; false: launch each kernel of each step by itself, for tools that look"});
  f.field("tuning_folder",
          tuning_folder,
          {.doc = "where measure remembers them; null: halfstep in XDG_CACHE_HOME or ~/.cache"});
}

void SlurmSpec::fields(Fields& f) {
  f.choice("signal", signal, k_signals, {.doc = "asks for a checkpoint and the end of the run"});
  f.choice("requeue", requeue, k_requeues, {.doc = "self: ask Slurm to run this job again"});
}

}  // namespace halfstep::config
