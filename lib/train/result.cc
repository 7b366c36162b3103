// Fields of the results of a run; reports and the state of a run hold the same.

#include "train/result.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace halfstep::train {
namespace {

constexpr std::array<std::string_view, 7> k_statuses{"completed",
                                                     "target_reached",
                                                     "stopped_early",
                                                     "interrupted",
                                                     "preempted",
                                                     "diverged",
                                                     "rank_lost"};

}  // namespace

std::span<const std::string_view> names_of(Status) { return k_statuses; }

std::string Segment::machine() const {
  const std::string of_ranks = ranks > 1 ? fmt::format(", {} ranks", ranks) : "";
  return fmt::format("{} ({}, {} threads{})", device, isa, threads, of_ranks);
}

void Segment::fields(Fields& f) {
  f("first_ordinal", first_ordinal, "batches drawn before it");
  f("started_at", started_at, {.doc = "UTC", .utc = true});
  f("host", host, "of the machine");
  f("device", device, "backend that computed");
  f("isa", isa, "strongest instruction set of the CPU's kernels");
  f("threads", threads, {.doc = "in use", .min = 1});
  f("ranks", ranks, {.doc = "processes that trained together", .min = 1, .optional = true});
  f("policy", policy, "requested precision: a policy, or rewrite");
  f("config_sha256", config_hash, {.doc = "of the resolved config", .old_name = "config_hash"});
  f("data_xxh3_128",
    data_hash,
    {.doc = "of the training samples and their labels", .old_name = "data_hash"});
  f("changed", changed, "settings unlike those before: path: before -> after");
}

void Counters::fields(Fields& f) {
  f("attempted", attempted, "forward and backward done");
  f("applied", applied, "weights changed");
  f("ordinal", ordinal, "batches drawn");
  f("skipped", skipped, "batches whose update was skipped");
  f("retried", retried, "attempts repeated with a lower scale");
  f("samples_seen", samples_seen, "in batches drawn");
  f("samples_trained", samples_trained, "in applied steps");
  f("samples_retried", samples_retried, {.doc = "in repeated attempts", .optional = true});
}

void EpochRecord::fields(Fields& f) {
  f("epoch", epoch, "from 1");
  f("partial", partial, "whether it ended before its last batch");
  f("train", train, "means while training");
  f("validation", validation, "means on the validation split");
  f("learning_rate", learning_rate, "of the last step");
  f("loss_scale", loss_scale, "at the end; null without scaling");
  f("skipped_steps", skipped_steps, "in the epoch");
  f("steps", steps, "in the epoch");
  f("train_seconds", train_seconds, "s");
  f("eval_seconds", eval_seconds, "s");
}

void TimeToAccuracy::fields(Fields& f) {
  f("metric", metric, "by its name in the history");
  f("target", target, "its value to reach");
  f("reached", reached, "whether it was");
  f("step", step, "applied steps until then");
  f("epoch", epoch, "epochs until then");
  f("train_seconds", train_seconds, "s in training steps until then");
  f("wall_seconds", wall_seconds, "s until then");
}

void MemoryUse::fields(Fields& f) {
  f("device_peak_allocated_bytes", device_allocated_bytes, "by this process; 0 on the CPU");
  f("device_peak_reserved_bytes",
    device_in_use_bytes,
    "in use, by libraries and other processes too; 0 on the CPU");
  f("host_peak_rss_bytes", peak_rss_bytes, "largest resident set of the process");
  f("planned_state_bytes", state_bytes, "variables, packed weights");
  f("planned_arena_bytes", arena_bytes, "activations, gradients, workspaces");
  f("data_bytes", data_bytes, "samples and labels in memory");
}

}  // namespace halfstep::train
