#include "report/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace halfstep::report {
namespace {

bool is_half_name(const std::string& dtype) { return dtype == "float16" || dtype == "bfloat16"; }

/// What differs between two explanations of one model, op by op.
struct Difference {
  const OpRow* a = nullptr;
  const OpRow* b = nullptr;
};

std::vector<Difference> differences(const Explanation& a, const Explanation& b) {
  std::map<std::string, const OpRow*> other;
  for (const OpRow& row : b.rows) other[row.name] = &row;
  std::vector<Difference> found;
  for (const OpRow& row : a.rows) {
    const auto it = other.find(row.name);
    if (row.type == "Cast") continue;
    if (it == other.end()) continue;
    if (it->second->compute_dtype != row.compute_dtype || it->second->out_dtype != row.out_dtype) {
      found.push_back({&row, it->second});
    }
  }
  return found;
}

void shape_hints(const plan::Plan& plan, Explanation& e) {
  const graph::Graph& graph = plan.graph();
  std::set<std::string> told;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.op != "MatMul" || node.origin.phase != graph::Phase::forward) continue;
    const Shape& a = graph.type(node.inputs[0]).shape;
    const Shape& out = node.outputs[0].shape;
    if (!is_half(node.outputs[0].dtype) || !told.insert(node.origin.layer).second) continue;
    const std::array<std::pair<std::string_view, std::int64_t>, 3> dims{
        {{"batch", out[0]}, {"inputs", a.back()}, {"units", out[1]}}};
    for (const auto& [what, extent] : dims) {
      if (extent % 8 == 0) continue;
      e.hints.push_back(
          {"W203",
           node.origin.layer,
           fmt::format("{} {} is not a multiple of 8, which 16-bit units work in; {} would be",
                       what,
                       extent,
                       (extent + 7) / 8 * 8)});
    }
  }
}

void size_hint(double flops, Explanation& e) {
  constexpr double k_small = 5e7;
  if (flops > 0 && flops < k_small) {
    e.hints.push_back(
        {"W204",
         "",
         fmt::format("a step has {:.1f} MFLOP: too few for 16 bits to save time; expect "
                     "memory savings only",
                     flops / 1e6)});
  }
}

/// Denied ops, by who denied them.
void deny_hints(Explanation& e) {
  std::map<std::string, std::int64_t> by_cause;
  for (const train::RewriteDecision& d : e.rewrite.decisions) {
    if (d.step == "deny_spread" && !d.cause.empty() && d.list != "deny") ++by_cause[d.cause];
  }
  for (const auto& [cause, count] : by_cause) {
    const auto op = std::find_if(e.rewrite.decisions.begin(),
                                 e.rewrite.decisions.end(),
                                 [&](const auto& d) { return d.node == cause; });
    if (op == e.rewrite.decisions.end() || op->list.empty()) continue;
    e.hints.push_back(
        {"W205",
         cause,
         fmt::format("{} keeps {} ops behind it in float32; to let them through: --set "
                     "precision.lists.{}.remove=[{}] --set precision.lists.clear.add=[{}]",
                     op->op,
                     count,
                     op->list,
                     op->op,
                     op->op)});
  }
}

std::string short_reason(const std::string& reason, std::size_t width) {
  return reason.size() <= width ? reason : reason.substr(0, width - 3) + "...";
}

}  // namespace

Explanation explain(train::Session& session) {
  Explanation e;
  const config::RunSpec& spec = session.spec();
  e.rewrite = session.prepared().rewrite;
  e.policy = e.rewrite.target.empty() ? spec.precision.policy : "rewrite to " + e.rewrite.target;
  e.device = session.backend().name;
  plan::Plan& plan = session.plan(nn::Purpose::train, spec.training.batch_size);
  e.rows = op_rows(plan);

  double all_flops = 0, half_flops = 0, all_bytes = 0, half_bytes = 0;
  const graph::Graph& graph = plan.graph();
  for (const OpRow& row : e.rows) {
    all_flops += row.flops;
    if (is_half_name(row.compute_dtype)) half_flops += row.flops;
    const graph::Node& node = graph.node(graph.find(row.name));
    for (const graph::TensorType& type : node.outputs) {
      if (!is_floating(type.dtype)) continue;
      const auto bytes =
          static_cast<double>(type.shape.elements()) * static_cast<double>(size_bytes(type.dtype));
      all_bytes += bytes;
      if (is_half(type.dtype)) half_bytes += bytes;
      if (node.op != "Cast" || !is_floating(graph.type(node.inputs[0]).dtype)) continue;
      ++e.casts;
      e.cast_bytes += bytes + static_cast<double>(type.shape.elements()) *
                                  static_cast<double>(size_bytes(graph.type(node.inputs[0]).dtype));
    }
  }
  e.half_flops_share = all_flops > 0 ? half_flops / all_flops : 0;
  e.half_bytes_share = all_bytes > 0 ? half_bytes / all_bytes : 0;
  shape_hints(plan, e);
  if (half_flops > 0) size_hint(all_flops, e);
  deny_hints(e);
  for (const config::Warning& w : session.warnings())
    e.hints.push_back({w.code, to_string(w.where), w.message});
  return e;
}

Json to_json(const Explanation& e) {
  Json hints = Json::array();
  for (const Hint& hint : e.hints) {
    hints.push_back(
        {{"code", hint.code}, {"where", utf8(hint.where)}, {"message", utf8(hint.message)}});
  }
  return {{"schema_version", 1},
          {"kind", "explain"},
          {"policy", e.policy},
          {"device", e.device},
          {"ops", ops_block(e.rows)},
          {"rewrite", rewrite_block(e.rewrite)},
          {"casts_executed", e.casts},
          {"cast_bytes", number(e.cast_bytes)},
          {"half_flops_share", number(e.half_flops_share)},
          {"half_bytes_share", number(e.half_bytes_share)},
          {"hints", std::move(hints)}};
}

std::string to_table(const Explanation& e) {
  std::string text = fmt::format("{}, {}\n\n{:<44} {:<26} {:<9} {:<9} {:<9} {:<24} {}\n",
                                 e.policy,
                                 e.device,
                                 "op",
                                 "type",
                                 "in",
                                 "compute",
                                 "out",
                                 "kernel",
                                 "decided by");
  std::string phase;
  for (const OpRow& row : e.rows) {
    if (row.phase != phase) {
      phase = row.phase;
      text += fmt::format("-- {}\n", phase);
    }
    text += fmt::format("{:<44} {:<26} {:<9} {:<9} {:<9} {:<24} {}\n",
                        short_reason(row.name, 44),
                        short_reason(row.type, 26),
                        row.in_dtype,
                        row.compute_dtype,
                        row.out_dtype,
                        short_reason(row.kernel, 24),
                        row.reason);
  }
  text += fmt::format(
      "\n{} casts move {:.2f} MB; {:.1f} % of the FLOPs and {:.1f} % of the bytes written are "
      "16-bit\n",
      e.casts,
      e.cast_bytes / 1e6,
      e.half_flops_share * 100,
      e.half_bytes_share * 100);
  if (!e.rewrite.target.empty()) {
    text += fmt::format("rewrite: {} of {} nodes converted to {}\n",
                        e.rewrite.nodes_converted,
                        e.rewrite.nodes_total,
                        e.rewrite.target);
  }
  for (const Hint& hint : e.hints) {
    text += fmt::format(
        "hint {}{}{}: {}\n", hint.code, hint.where.empty() ? "" : " ", hint.where, hint.message);
  }
  return text;
}

std::string to_dot(const Explanation& e) {
  std::string text = "digraph step {\n  rankdir=TB;\n  node [shape=box, style=filled];\n";
  std::string previous;
  for (const OpRow& row : e.rows) {
    text += fmt::format("  \"{}\" [label=\"{}\\n{}\", fillcolor={}];\n",
                        row.name,
                        row.name,
                        row.compute_dtype,
                        is_half_name(row.compute_dtype) ? "palegreen" : "white");
    if (!previous.empty()) text += fmt::format("  \"{}\" -> \"{}\";\n", previous, row.name);
    previous = row.name;
  }
  return text + "}\n";
}

Json diff_json(const Explanation& a,
               const Explanation& b,
               const std::string& name_a,
               const std::string& name_b) {
  Json ops = Json::array();
  for (const Difference& d : differences(a, b)) {
    ops.push_back({{"name", utf8(d.a->name)},
                   {"type", d.a->type},
                   {"compute_dtype", {d.a->compute_dtype, d.b->compute_dtype}},
                   {"out_dtype", {d.a->out_dtype, d.b->out_dtype}},
                   {"kernel", {d.a->kernel, d.b->kernel}},
                   {"reason", {utf8(d.a->reason), utf8(d.b->reason)}}});
  }
  return {{"schema_version", 1},
          {"kind", "explain_diff"},
          {"policies", {name_a, name_b}},
          {"ops", std::move(ops)}};
}

std::string diff_table(const Explanation& a,
                       const Explanation& b,
                       const std::string& name_a,
                       const std::string& name_b) {
  std::string text =
      fmt::format("{:<44} {:<26} {:<20} {:<20} kernels\n", "op", "type", name_a, name_b);
  for (const Difference& d : differences(a, b)) {
    text += fmt::format("{:<44} {:<26} {:<20} {:<20} {} | {}\n",
                        short_reason(d.a->name, 44),
                        short_reason(d.a->type, 26),
                        d.a->compute_dtype,
                        d.b->compute_dtype,
                        d.a->kernel,
                        d.b->kernel);
  }
  return text;
}

}  // namespace halfstep::report
