#include <fmt/format.h>

#include <map>

#include "precision/graph_report.h"
#include "report/explain_text.h"

namespace halfstep::report {
namespace {

using precision::dot_text;

std::string box(const Explanation& e, std::size_t id, const ExplainedOp& op) {
  const std::string tooltip =
      fmt::format("{}: {}; kernel {}", op.info.name, short_reason(e, op), short_kernel(e, op));
  if (op.cast) {
    return fmt::format("n{} [label={}, shape=ellipse, fillcolor=lightyellow, tooltip={}];\n",
                       id,
                       dot_text("cast to " + short_dtype(op.info.out_dtype)),
                       dot_text(tooltip));
  }
  const std::string_view color = is_half_name(op.info.compute_dtype) ? "palegreen"
                                 : op.step == "deny_spread"          ? "lightcoral"
                                                                     : "white";
  return fmt::format("n{} [label={}, fillcolor={}, tooltip={}];\n",
                     id,
                     dot_text(op.info.type),
                     color,
                     dot_text(tooltip));
}

}  // namespace

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
                          dot_text(short_dtype(e.ops[source].info.out_dtype)));
    }
  }
  return text + "}\n";
}

}  // namespace halfstep::report
