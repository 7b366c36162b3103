#include <algorithm>
#include <map>

#include "analysis/gpu_prediction.h"
#include "analysis/work.h"
#include "core/statistics.h"
#include "study/bench.h"
#include "train/batch_source.h"

namespace halfstep::study {
namespace {

using report::ProfiledOp;

constexpr std::int64_t k_warmup = 3;

/// A launch with its work per step.
struct TimedOp {
  ProfiledOp op;
  double flops = 0, bytes = 0;
};

/// Fills in the rates of work done in `row.ms`, which work of zero has none of, and the share of
/// `total_ms`.
template <class Row>
void set_rates(Row& row, double flops, double bytes, double total_ms) {
  row.share = total_ms > 0 ? row.ms / total_ms : 0;
  if (flops > 0 && row.ms > 0) row.achieved_tflops = flops / row.ms / 1e9;
  if (bytes > 0 && row.ms > 0) row.achieved_gbs = bytes / row.ms / 1e6;
}

/// Groups launches by one of their names, the slowest group first.
template <class Share>
std::vector<Share> time_shares(const std::vector<TimedOp>& ops,
                               std::string ProfiledOp::*word,
                               double total_ms) {
  struct Group {
    Share share;
    double flops = 0, bytes = 0;
  };
  std::map<std::string, Group> groups;
  for (const TimedOp& timed : ops) {
    const std::string name = (timed.op.*word).empty() ? "-" : timed.op.*word;
    Group& group = groups[name];
    group.share.name = name;
    ++group.share.launches;
    group.share.ms += timed.op.ms;
    group.bytes += timed.bytes;
    group.flops += timed.flops;
  }
  std::vector<Share> shares;
  for (auto& [name, group] : groups) {
    set_rates(group.share, group.flops, group.bytes, total_ms);
    shares.push_back(std::move(group.share));
  }
  std::ranges::stable_sort(shares, std::greater(), &Share::ms);
  return shares;
}

report::Profile profile_block(std::int64_t steps, bool device, const std::vector<TimedOp>& ops) {
  report::Profile block;
  block.scope = device ? "captured steps of their own with an event after every launch; medians"
                       : "a pass of its own in which every launch is timed; medians";
  block.steps = steps;
  for (const TimedOp& timed : ops) {
    block.total_ms += timed.op.ms;
    if (timed.op.predicted_ms) {
      block.predicted_ms = block.predicted_ms.value_or(0) + *timed.op.predicted_ms;
    }
  }
  block.by_type = time_shares<report::TypeShare>(ops, &ProfiledOp::type, block.total_ms);
  block.by_layer = time_shares<report::LayerShare>(ops, &ProfiledOp::layer, block.total_ms);
  block.by_phase = time_shares<report::PhaseShare>(ops, &ProfiledOp::phase, block.total_ms);
  for (const TimedOp& timed : ops) {
    set_rates(block.ops.emplace_back(timed.op), timed.flops, timed.bytes, block.total_ms);
  }
  return block;
}

}  // namespace

std::optional<report::Profile> profile_ops(train::Session& session,
                                           std::int64_t steps,
                                           const std::function<bool()>& stop) {
  const std::int64_t batch = session.spec().training.batch_size;
  plan::Plan& plan = session.plan(nn::Purpose::train, batch);
  const graph::Graph& graph = plan.graph();
  const auto nodes = static_cast<std::size_t>(graph.size());
  std::vector<std::vector<double>> milliseconds(nodes);

  const data::SplitView& rows = session.train_split();
  const std::unique_ptr<train::BatchSource> batches =
      train::host_batches(rows,
                          train::batch_options(session.spec()),
                          {.ahead = 0, .image_dtype = rows.images.dtype},
                          false);
  std::int64_t profiled = 0;
  for (std::int64_t i = -k_warmup; i < steps && !(stop && stop()); ++i) {
    // A step may overwrite its inputs.
    batches->fill(0, plan);
    std::vector<double> seconds(nodes, 0.0);
    plan.profile(seconds);
    if (i < 0) continue;
    for (std::size_t node = 0; node < nodes; ++node) {
      milliseconds[node].push_back(seconds[node] * 1e3);
    }
    ++profiled;
  }
  if (profiled == 0) return std::nullopt;
  const std::optional<analysis::StepPrediction> predicted = analysis::predict_step(session);
  std::vector<TimedOp> ops;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    if (choice.kernel.empty()) continue;
    const graph::Node& node = graph.node(choice.node);
    TimedOp& timed = ops.emplace_back();
    timed.op.name = node.name;
    timed.op.type = node.op;
    timed.op.layer = node.origin.layer;
    timed.op.phase = name(node.origin.phase);
    timed.op.kernel = choice.kernel;
    if (choice.algorithm) timed.op.algorithm = choice.algorithm->text;
    if (predicted) timed.op.predicted_ms = predicted->ms_of(node.name);
    timed.op.ms = median(milliseconds[static_cast<std::size_t>(choice.node)]);
    const analysis::NodeWork work = analysis::node_work(graph, node);
    timed.flops = work.flops;
    timed.bytes = work.bytes;
  }
  if (ops.empty()) return std::nullopt;
  return profile_block(profiled, session.backend().device != nullptr, ops);
}

}  // namespace halfstep::study
