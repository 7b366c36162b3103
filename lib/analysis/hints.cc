#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "analysis/explanation.h"
#include "config/warning_codes.h"
#include "core/half.h"
#include "core/ranges.h"
#include "graph/op_handles.h"
#include "nn/step_graph.h"
#include "precision/rewrite.h"

namespace halfstep::analysis {
namespace {

using graph::Graph;
using graph::Node;

struct HintContext {
  train::Session& session;
  const Graph& graph;
  const Explanation& e;
  DType half;  ///< dtype of the matmuls
  std::optional<MatrixUnit> unit;
  std::vector<config::Warning>& found;

  void add(std::string_view code, std::string where, std::string message) const {
    found.push_back(config::warning(code, {"", 0, 0, std::move(where)}, std::move(message)));
  }
};

struct Extent {
  std::string_view what;
  std::int64_t size;
};

/// The extents of a forward matmul that are a user's choice; nothing for other ops.
std::vector<Extent> extents(const Graph& graph, const Node& node) {
  const auto last = [&](std::size_t i) { return graph.type(node.inputs[i]).shape.back(); };
  if (node.is(graph::ops::k_matmul)) {
    const Shape& out = node.outputs[0].shape;
    return {{"batch", out[0]}, {"inputs", last(0)}, {"units", out[1]}};
  }
  if (node.is(graph::ops::k_conv2d)) return {{"input channels", last(0)}, {"filters", last(1)}};
  return {};
}

void padding_hints(const HintContext& c) {
  if (!c.unit) return;
  for (const ExplainedOp& op : c.e.ops) {
    const Node& node = c.graph.node(c.graph.find(op.info.name));
    if (op.info.phase != "forward" || node.outputs.empty()) continue;
    if (!is_half(node.outputs[0].dtype)) continue;
    std::vector<std::string> descriptions;
    double padded = 1;
    for (const Extent& extent : extents(c.graph, node)) {
      const std::int64_t up =
          (extent.size + c.unit->multiple - 1) / c.unit->multiple * c.unit->multiple;
      if (up == extent.size) continue;
      descriptions.push_back(fmt::format("{} {} (to {})", extent.what, extent.size, up));
      padded *= static_cast<double>(up) / static_cast<double>(extent.size);
    }
    if (descriptions.empty()) continue;
    const double share = op.info.flops / c.e.flops;
    const double cost = share * (padded - 1);
    constexpr double k_negligible = 0.02;
    c.add(config::k_padded_extent,
          op.info.layer,
          fmt::format("{} work in multiples of {} and pad {}; this adds {} of the step's FLOPs{}",
                      c.unit->name,
                      c.unit->multiple,
                      fmt::join(descriptions, ", "),
                      cost < 0.001 ? "under 0.1 %" : fmt::format("{:.1f} %", cost * 100),
                      cost < k_negligible ? ": negligible" : ""));
  }
}

void unit_hint(const HintContext& c) {
  if (c.unit) return;
  c.add(config::k_no_matrix_unit,
        "",
        fmt::format("{} multiplies no {}: values are {}",
                    c.e.arch,
                    name(c.half),
                    half_caveat(c.e.arch, c.half)));
}

void size_hint(const HintContext& c) {
  constexpr double k_small = 5e7;
  if (c.e.flops >= k_small) return;
  c.add(config::k_little_work,
        "",
        fmt::format(
            "a step has {:.3g} MFLOP: too few for 16 bits to save time; expect to save memory only",
            c.e.flops / 1e6));
}

void cast_hint(const HintContext& c) {
  constexpr double k_much = 0.25;
  if (c.e.bytes == 0 || c.e.cast_bytes < k_much * c.e.bytes) return;
  const auto largest = std::ranges::max_element(c.e.ops, {}, &ExplainedOp::cast_bytes);
  c.add(config::k_many_casts,
        "",
        fmt::format("casts read and write {}, where all ops together write {}; {} of it by {}{}",
                    megabytes(c.e.cast_bytes),
                    megabytes(c.e.bytes),
                    megabytes(largest->cast_bytes),
                    short_name(*largest),
                    largest->info.layer.empty() ? "" : " of " + largest->info.layer));
}

/// The scalar of a Const behind casts, or nothing.
std::optional<double> constant_behind(const Graph& graph, graph::Value value) {
  const Node* node = &graph.node(value.node);
  while (node->is(graph::ops::k_cast)) node = &graph.node(node->inputs[0].node);
  return graph::constant_of(*node);
}

void epsilon_hints(const HintContext& c) {
  constexpr double k_smallest_subnormal = 0x1p-24;
  for (const ExplainedOp& op : c.e.ops) {
    if (op.info.compute_dtype != "float16") continue;
    const Node& node = c.graph.node(c.graph.find(op.info.name));
    for (const graph::Value& input : node.inputs) {
      const std::optional<double> value = constant_behind(c.graph, input);
      if (!value || *value == 0 || std::abs(*value) >= k_smallest_subnormal) continue;
      c.add(config::k_lost_epsilon,
            op.info.layer,
            fmt::format("{} computes with {:.3g}, which is nearly or exactly 0 in float16, whose "
                        "smallest number is 6e-8; give a larger epsilon or dtype: float32",
                        op.info.name,
                        *value));
    }
  }
}

/// Edits that move an op from the deny list to the infer list.
std::string edit_flags(const std::string& op) {
  return fmt::format(
      "--set precision.lists.deny.remove=[{0}] --set precision.lists.infer.add=[{0}]", op);
}

/// The number of further ops that are converted when `op` may be, determined by a rewrite.
std::int64_t count_more_converted(const HintContext& c, const Graph& step, const std::string& op) {
  config::RunSpec spec = c.session.spec();
  spec.precision.lists.deny.remove.push_back(op);
  spec.precision.lists.infer.add.push_back(op);
  const train::Prepared tried = plan::prepare_graph(step, spec);
  return tried.rewrite.nodes_converted - c.e.rewrite.nodes_converted;
}

void deny_hints(const HintContext& c) {
  // The loss belongs in float32.
  static constexpr std::array<std::string_view, 2> k_losses{"SoftmaxCrossEntropyWithLogits",
                                                            "SparseSoftmaxCrossEntropyWithLogits"};
  std::map<std::string, std::string> denied;  // op -> the first of its nodes
  for (const plan::RewriteDecision& d : c.e.rewrite.decisions) {
    const bool loss = contains(k_losses, d.op);
    if (d.list == "deny" && !loss) denied.emplace(d.op, d.node);
  }
  if (denied.empty()) return;
  const Graph step =
      nn::build_step(c.session.step_spec(), c.session.data_shape(), c.e.batch, nn::Purpose::train);
  for (const auto& [op, node] : denied) {
    const std::int64_t more = count_more_converted(c, step, op);
    if (more <= 0) continue;
    c.add(
        config::k_denied_op,
        node,
        fmt::format("`{}` is on the deny list and keeps the ops after it in float32; {} more op{} "
                    "would be {} with {}",
                    op,
                    more,
                    more == 1 ? "" : "s",
                    name(c.half),
                    edit_flags(op)));
  }
}

void rewrite_hints(const HintContext& c) {
  const plan::RewriteSummary& rewrite = c.e.rewrite;
  if (rewrite.target.empty()) return;
  if (rewrite.nodes_converted == 0) {
    c.add(config::k_idle_rewrite,
          "",
          rewrite.message.empty() ? "the rewrite converted nothing"
                                  : "the rewrite converted nothing: " + rewrite.message);
  }
  if (is_gpu(c.e.arch) && !precision::is_suitable_gpu(c.e.arch)) {
    c.add(config::k_unsuitable_gpu,
          "",
          fmt::format("TensorFlow leaves graphs as they are on {}, which is below compute "
                      "capability 7.0 and has no tensor cores; shown is what the rewrite would do",
                      c.e.arch));
  }
  deny_hints(c);
}

/// The 16-bit dtype that matmuls compute in, if any does.
std::optional<DType> half_of(const Explanation& e) {
  for (const ExplainedOp& op : e.ops) {
    if (op.info.flops > 0 && is_half_name(op.info.compute_dtype)) {
      return dtype_named(op.info.compute_dtype);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<config::Warning> hints(train::Session& session, const Explanation& e) {
  std::vector<config::Warning> found;
  const std::optional<DType> half = half_of(e);
  const DType meant = half.value_or(dtype_named(e.rewrite.target).value_or(DType::float16));
  const HintContext context{session,
                            session.prepared().graph,
                            e,
                            meant,
                            half ? matrix_unit(e.arch, *half) : std::nullopt,
                            found};
  rewrite_hints(context);
  if (half) {
    unit_hint(context);
    padding_hints(context);
    size_hint(context);
    cast_hint(context);
    epsilon_hints(context);
  }
  std::ranges::copy(session.warnings(), std::back_inserter(found));
  return found;
}

}  // namespace halfstep::analysis
