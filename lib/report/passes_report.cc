#include "report/passes_report.h"

#include <array>

#include "report/blocks.h"

namespace halfstep::report {
namespace {

constexpr std::array<std::string_view, 3> k_outcomes{"unchanged", "changed", "skipped"};

const std::array<std::string_view, 3>& stage_names() {
  using plan::PassStage;
  static const std::array k_names{
      name(PassStage::training), name(PassStage::precision), name(PassStage::lowering)};
  return k_names;
}

}  // namespace

void PassBlock::fields(Fields& f) {
  f("name", name, "by which --dump-after and --skip-pass know it");
  f.one_of("stage", stage, stage_names(), "of compilation");
  f.one_of("outcome", outcome, k_outcomes, "whether the graph changed; skipped: by request");
  f("nodes_before", nodes_before, "nodes of the step graph");
  f("nodes_after", nodes_after, "nodes of the step graph");
  f("hides_values", hides_values, "whether values of the graph are removed, or stored packed only");
  f("exact", exact, "whether the weights after a step have the same bits without it");
  f("required", required, "whether no step can do without it");
  f("reason", reason, "for the pass, and for its position");
  f("graph", graph, {.doc = "as text after the pass; only with --dump-after", .omitted = true});
}

void PassesReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("passes", passes, {.doc = "in the order in which they ran", .each = "one pass"});
}

PassBlock pass_block(const plan::PassRun& run) {
  const plan::Pass& pass = run.pass;
  PassBlock block;
  block.name = pass.name;
  block.stage = plan::name(pass.stage());
  block.outcome = k_outcomes[run.skipped ? 2 : run.changed ? 1 : 0];
  block.nodes_before = run.nodes_before;
  block.nodes_after = run.graph.size();
  block.hides_values = pass.hides_values;
  block.exact = pass.exact;
  block.required = !pass.required.empty();
  block.reason = pass.reason;
  return block;
}

}  // namespace halfstep::report
