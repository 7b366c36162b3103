#include "report/explain_report.h"

#include <fmt/format.h>

#include <map>

#include "precision/graph_report.h"
#include "report/context.h"

namespace halfstep::report {
namespace {

using analysis::ExplainedOp;
using analysis::Explanation;
using precision::dot_text;

std::string box(const Explanation& e, std::size_t id, const ExplainedOp& op) {
  const std::string tooltip =
      fmt::format("{}: {}; kernel {}", op.info.name, short_reason(e, op), short_kernel(e, op));
  if (op.cast) {
    return fmt::format("n{} [label={}, shape=ellipse, fillcolor=lightyellow, tooltip={}];\n",
                       id,
                       dot_text("cast to " + analysis::short_dtype(op.info.out_dtype)),
                       dot_text(tooltip));
  }
  const std::string_view color = analysis::is_half_name(op.info.compute_dtype) ? "palegreen"
                                 : op.step == "deny_spread"                    ? "lightcoral"
                                                                               : "white";
  return fmt::format("n{} [label={}, fillcolor={}, tooltip={}];\n",
                     id,
                     dot_text(op.info.type),
                     color,
                     dot_text(tooltip));
}

}  // namespace

void ExplainReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  Explanation::fields(f);
  f("hints", hints, {.doc = "suggested changes", .each = "one hint"});
}

ExplainReport explain_report(train::Session& session, const std::string& gpu) {
  ExplainReport report{analysis::explain(session, gpu), {}};
  report.hints = warning_blocks(analysis::hints(session, report));
  return report;
}

void ExplainedDifference::fields(Fields& f) {
  f("name", name, "node of the step graph");
  f("type", type, "op");
  f("compute_dtype", compute_dtype, "on each side");
  f("out_dtype", out_dtype, "on each side");
  f("kernel", kernel, "on each side");
  f("reason", reason, "on each side");
}

void ExplainDiff::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("policies", policies, "names of the two sides");
  f("ops", ops, {.doc = "whose dtypes differ", .each = "one op"});
}

ExplainDiff explain_diff(const Explanation& a,
                         const Explanation& b,
                         const std::string& name_a,
                         const std::string& name_b) {
  ExplainDiff diff{{name_a, name_b}, {}};
  for (const auto& [left, right] : analysis::compare(a, b).differing) {
    const analysis::OpInfo &x = left->info, &y = right->info;
    diff.ops.push_back({y.name,
                        y.type,
                        {x.compute_dtype, y.compute_dtype},
                        {x.out_dtype, y.out_dtype},
                        {x.kernel, y.kernel},
                        {x.reason, y.reason}});
  }
  return diff;
}

bool is_main_phase(const std::string& phase) {
  return phase == "input" || phase == "forward" || phase == "loss";
}

std::string to_dot(const Explanation& e, bool verbose) {
  std::string text = "digraph step {\n  node [shape=box, style=filled];\n";
  std::map<std::string, std::string> clusters;
  std::vector<bool> shown(e.ops.size());
  for (std::size_t i = 0; i < e.ops.size(); ++i) {
    const ExplainedOp& op = e.ops[i];
    shown[i] = verbose || is_main_phase(op.info.phase);
    if (!shown[i]) continue;
    const std::string group = group_name(op) + (op.info.phase == "backward" ? ", backward" : "");
    clusters[group] += "    " + box(e, i, op);
  }
  std::size_t number = 0;
  for (const auto& [group, boxes] : clusters) {
    text += fmt::format(
        "  subgraph cluster_{} {{\n    label={};\n{}  }}\n", number++, dot_text(group), boxes);
  }
  for (std::size_t i = 0; i < e.ops.size(); ++i) {
    if (!shown[i]) continue;
    for (int from : e.ops[i].reads) {
      const auto source = static_cast<std::size_t>(from);
      if (!shown[source]) continue;
      text += fmt::format("  n{} -> n{} [label={}];\n",
                          from,
                          i,
                          dot_text(analysis::short_dtype(e.ops[source].info.out_dtype)));
    }
  }
  return text + "}\n";
}

}  // namespace halfstep::report
