#include "report/parallel_block.h"

#include <algorithm>

#include "comm/communicator.h"
#include "core/json_fields.h"
#include "core/statistics.h"

namespace halfstep::report {

void RankBlock::fields(Fields& f) {
  f("rank", rank, "its number, from 0");
  f("host", host, "on which it ran");
  f("threads", threads, {.doc = "that it computed with", .min = 1});
  f("step_seconds", step_seconds, "s, mean of a step");
  f("waited_seconds", waited_seconds, "s of it, mean, in which the rank waited for others");
  f("compute_seconds", compute_seconds, "s of it, mean, without waiting");
  f("sent_bytes", sent_bytes, "per step, mean, to other ranks");
}

void ParallelBlock::fields(Fields& f) {
  f("ranks", ranks, {.doc = "processes that trained together", .min = 1});
  f("library", library, "that carried the sums");
  f("all_reduce_dtype", all_reduce_dtype, "in which gradients travelled");
  f("each", each, {.doc = "the ranks", .each = "one rank, over its steps of this process"});
  f("slowest", slowest, "rank with the longest compute_seconds");
  f("imbalance", imbalance, "its compute_seconds over those of the median rank");
  f("waited_share", waited_share, "fraction of the time of all ranks in which they waited");
}

std::string rank_text(const train::Session& session,
                      const std::string& host,
                      const train::TrainResult& result) {
  train::StepSample sums;
  for (const train::StepSample& step : result.steps) {
    sums.total += step.total;
    sums.waited += step.waited;
    sums.sent_bytes += step.sent_bytes;
  }
  const double steps = std::max(1.0, static_cast<double>(result.steps.size()));
  RankBlock block;
  block.rank = session.ranks()->rank();
  block.host = host;
  block.threads = session.backend().capabilities.threads;
  block.step_seconds = sums.total / steps;
  block.waited_seconds = sums.waited / steps;
  block.compute_seconds = block.step_seconds - block.waited_seconds;
  block.sent_bytes = sums.sent_bytes / steps;
  return to_json(block).dump();
}

ParallelBlock parallel_block(const train::Session& session, const std::vector<std::string>& texts) {
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
  const auto slowest = std::max_element(compute.begin(), compute.end());
  block.slowest = slowest - compute.begin();
  const double median = halfstep::median(compute);
  block.imbalance = median > 0 ? *slowest / median : 1;
  block.waited_share = all > 0 ? waited / all : 0;
  return block;
}

}  // namespace halfstep::report
