#include "report/parallel_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/rank_messages.h"
#include "comm/communicator.h"
#include "core/json_fields.h"
#include "core/statistics.h"
#include "core/system.h"
#include "passes/lowering.h"
#include "train/trainer.h"

namespace halfstep::report {

void RankBlock::fields(Fields& f) {
  f("rank", rank, "its number, from 0");
  f("host", host, "on which it ran");
  f("threads", threads, {.doc = "that it computed with", .min = 1});
  f("step_seconds", step_seconds, "s, mean of a step");
  f("step_median", step_median, "s, median of a step");
  f("step_min", step_min, "s, of the fastest step");
  f("step_max", step_max, "s, of the slowest step");
  f("waited_seconds",
    waited_seconds,
    "s of it, mean, in which the rank waited for others; 0 on GPUs");
  f("compute_seconds", compute_seconds, "s of it, mean, without waiting");
  f("summing_seconds",
    summing_seconds,
    "s of it, mean, in which an all-reduce was in flight; 0 on GPUs");
  f("sent_bytes", sent_bytes, "per step, mean, to other ranks");
  f("saved_bytes", saved_bytes, "per step, mean, that float32 would have sent beside these");
  f("state_bytes", state_bytes, "of variables, of which parallel.shard divides some");
  f("arena_bytes", arena_bytes, "of values of a step");
}

void SumErrorBlock::fields(Fields& f) {
  f("steps", steps, {.doc = "all-reduced in both dtypes, the first of each epoch", .min = 1});
  f("relative",
    relative,
    "root of the sum of squared differences of gradients over that of squared float32 sums");
}

void SyncBatchNormBlock::fields(Fields& f) {
  f("layers", layers, {.doc = "that take the statistics of all ranks", .min = 1});
  f("messages",
    messages,
    {.doc = "of a step, beside the sums of gradients: one forward and one backward for each layer "
            "and part, where a layer below it is trained",
     .min = 1});
  f("sent_bytes", sent_bytes, "of them, per step, by each rank; a part of each.sent_bytes");
}

void ParallelBlock::fields(Fields& f) {
  f("ranks", ranks, {.doc = "processes that trained together", .min = 1});
  f("library", library, "of the all-reduce on CPUs; on GPUs it is NCCL");
  f("all_reduce_dtype", all_reduce_dtype, "of gradients in the all-reduce");
  f("each", each, {.doc = "the ranks", .each = "one rank, over its steps of this process"});
  f("slowest", slowest, "rank with the longest compute_seconds");
  f("imbalance", imbalance, "its compute_seconds over those of the median rank");
  f("waited_share", waited_share, "fraction of the time of all ranks in which they waited");
  f("hidden_share",
    hidden_share,
    {.doc = "fraction of the all-reduce time that the slowest rank spent computing, for which the "
            "others wait as well; null without an all-reduce",
     .min = 0,
     .max = 1});
  f("sum_error",
    sum_error,
    {.doc = "of all-reduced gradients in 16 bits, against float32; null where they are reduced in "
            "float32, and on GPUs",
     .optional = true});
  f("sync_batch_norm",
    sync_batch_norm,
    {.doc = "messages of synchronized batch normalization; null where no layer is synchronized",
     .optional = true});
}

namespace {

std::optional<SyncBatchNormBlock> sync_batch_norm(const graph::Graph& step, bool on_gpus) {
  SyncBatchNormBlock block;
  std::set<std::string> layers;
  const std::optional<analysis::RankMessages> all = analysis::rank_messages(step, on_gpus);
  for (const analysis::RankMessage& message :
       all ? all->messages : std::vector<analysis::RankMessage>{}) {
    if (!message.of_layer) continue;
    layers.insert(message.layers.front());
    ++block.messages;
    block.sent_bytes += message.sent_bytes;
  }
  block.layers = std::ssize(layers);
  return layers.empty() ? std::nullopt : std::optional(block);
}

RankBlock rank_block(const train::Session& session, const train::TrainResult& result) {
  // Without a counted step all of them.
  const bool counted = std::ranges::any_of(result.steps, &train::StepSample::counted);
  train::StepSample sums;
  std::vector<double> totals;
  for (const train::StepSample& step : result.steps) {
    if (counted && !step.counted) continue;
    totals.push_back(step.total);
    sums.total += step.total;
    sums.waited += step.waited;
    sums.summing += step.summing;
    sums.sent_bytes += step.sent_bytes;
    sums.saved_bytes += step.saved_bytes;
  }
  const double steps = std::max(1.0, static_cast<double>(totals.size()));
  RankBlock block;
  block.rank = session.ranks()->rank();
  block.host = host_name();
  block.threads = session.backend().capabilities.threads;
  block.step_seconds = sums.total / steps;
  block.waited_seconds = sums.waited / steps;
  block.compute_seconds = block.step_seconds - block.waited_seconds;
  block.summing_seconds = sums.summing / steps;
  block.sent_bytes = sums.sent_bytes / steps;
  block.saved_bytes = sums.saved_bytes / steps;
  block.state_bytes = result.memory.state_bytes;
  block.arena_bytes = result.memory.arena_bytes;
  if (!totals.empty()) {
    block.step_median = median(totals);
    block.step_min = *std::ranges::min_element(totals);
    block.step_max = *std::ranges::max_element(totals);
  }
  return block;
}

}  // namespace

std::optional<ParallelBlock> gather_ranks(const train::Session& session,
                                          train::TrainResult& result) {
  if (session.ranks() == nullptr || result.status == train::Status::rank_lost) return std::nullopt;
  std::vector<std::string> texts;
  try {
    texts = session.ranks()->gather(to_json(rank_block(session, result)).dump());
  } catch (const comm::RankLost& lost) {
    result.status = train::Status::rank_lost;
    result.message = train::lost_after_training(lost);
    return std::nullopt;
  }
  ParallelBlock block;
  block.ranks = session.ranks()->size();
  block.library = session.ranks()->transport().library;
  block.all_reduce_dtype = name(session.step_spec().parallel.all_reduce_dtype);
  std::vector<double> compute;
  double waited = 0, all = 0;
  for (const std::string& text : texts) {
    RankBlock& rank = block.each.emplace_back();
    std::vector<Violation> violations;
    read_json(Json::parse(text), field_ref(rank), violations);
    require(violations.empty(), "a rank sent {}", text);
    compute.push_back(rank.compute_seconds);
    waited += rank.waited_seconds;
    all += rank.step_seconds;
  }
  const auto slowest = std::ranges::max_element(compute);
  block.slowest = slowest - compute.begin();
  const double median = halfstep::median(compute);
  block.imbalance = median > 0 ? *slowest / median : 1;
  block.waited_share = all > 0 ? waited / all : 0;
  // The other ranks also wait for the slowest one, which no order of messages hides.
  const RankBlock& last = block.each[static_cast<std::size_t>(block.slowest)];
  if (last.summing_seconds > 0) {
    block.hidden_share = std::max(0.0, 1 - last.waited_seconds / last.summing_seconds);
  }
  block.sync_batch_norm =
      sync_batch_norm(passes::prune(session.prepared().graph), session.backend().device != nullptr);
  // All ranks have the same sums, and so the same errors.
  const comm::RoundingError& error = session.ranks()->error();
  if (error.squared_sums > 0) {
    block.sum_error = {error.steps, std::sqrt(error.squared_errors / error.squared_sums)};
  }
  return block;
}

std::string parallel_line(const ParallelBlock& block) {
  std::vector<double> medians;
  double sent = 0, saved = 0, step_min = 0, step_max = 0;
  for (const RankBlock& rank : block.each) {
    medians.push_back(rank.step_median);
    sent += rank.sent_bytes / static_cast<double>(block.ranks);
    saved += rank.saved_bytes / static_cast<double>(block.ranks);
    step_min = medians.size() == 1 ? rank.step_min : std::min(step_min, rank.step_min);
    step_max = std::max(step_max, rank.step_max);
  }
  const RankBlock& slowest = block.each.at(static_cast<std::size_t>(block.slowest));
  std::string text = fmt::format(
      "{} ranks: step {:.3g} ms (median; {:.3g} to {:.3g}), {:.0f} % of the time waited",
      block.ranks,
      1e3 * median(medians),
      1e3 * step_min,
      1e3 * step_max,
      100 * block.waited_share);
  if (block.hidden_share) {
    text += fmt::format(", {:.0f} % of the all-reduce hidden", 100 * *block.hidden_share);
  }
  text += fmt::format(
      "; rank {} ({}) computes longest, {:.2f} times the median; {:.3g} MB per step and rank sent",
      slowest.rank,
      slowest.host,
      block.imbalance,
      sent / 1e6);
  if (saved > 0) text += fmt::format(", {:.3g} MB saved by 16 bits", saved / 1e6);
  if (block.sum_error) text += fmt::format(", relative error {:.2g}", block.sum_error->relative);
  if (const auto& sync = block.sync_batch_norm) {
    text += fmt::format("; {} synchronized batch normalization{}: {} messages, {:.3g} kB of it",
                        sync->layers,
                        sync->layers == 1 ? "" : "s",
                        sync->messages,
                        sync->sent_bytes / 1e3);
  }
  return text;
}

}  // namespace halfstep::report
