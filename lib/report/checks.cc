#include <set>
#include <unordered_map>

#include "report/any_report.h"
#include "report/check_blocks.h"

namespace halfstep::report {
namespace {

void check_counters(const TrainReport& report, const Member& at) {
  const Steps& steps = report.steps;
  const LossScale& scale = report.loss_scale;
  const plan::RewriteSummary& rewrite = report.precision.rewrite;
  const auto is_sum = [](std::int64_t total, std::initializer_list<std::int64_t> counts) {
    return static_cast<std::uint64_t>(total) == sum_of(counts);
  };
  at["steps"]["attempted"].must(
      is_sum(steps.attempted, {steps.applied, scale.skipped_steps, scale.retried_steps}),
      "is not applied + skipped + retried");
  at["steps"]["ordinal"].must(is_sum(steps.ordinal, {steps.applied, scale.skipped_steps}),
                              "is not applied + skipped");
  at["samples"]["trained"].must(report.samples.trained <= report.samples.seen,
                                "is more than samples.seen");
  at["loss_scale"]["events"].must(scale.mode != "none" || scale.events.empty(),
                                  "holds changes of a scale although the mode is none");
  at["precision"]["rewrite"]["nodes_converted"].must(rewrite.nodes_converted <= rewrite.nodes_total,
                                                     "is more than nodes_total");
}

/// Lists of events at some attempts: in order, within the run, and all that were counted.
template <class Entry>
void check_attempts(const Steps& steps, const std::vector<Entry>& entries, const Member& list) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Member at = list[i];
    at["attempt"].must(entries[i].attempt <= steps.attempted, "is more than steps.attempted");
    at["attempt"].must(i == 0 || entries[i].attempt > entries[i - 1].attempt,
                       "does not come after the one before");
    at["ordinal"].must(entries[i].ordinal <= steps.ordinal, "is more than steps.ordinal");
  }
}

void check_skips(const LossScale& scale, const Member& skips) {
  if (!scale.skips_left_out) return;
  const std::uint64_t listed = scale.skips.size() + sum_of({*scale.skips_left_out});
  const std::uint64_t counted = sum_of({scale.skipped_steps, scale.retried_steps});
  skips.must(listed == counted,
             "lists {} attempts, skipped_steps and retried_steps give {}",
             listed,
             counted);
}

/// The step history has at most as many batches and skips as the run, and equally many when it
/// starts with it.
void check_run_by_step(const TrainReport& report, const Member& at) {
  if (!report.step_history) return;
  const StepColumns& history = *report.step_history;
  check_step_history(history, at);
  const std::vector<std::int64_t>& steps = history.step;
  if (steps.empty()) return;
  at["step"].must(steps.back() <= report.steps.ordinal, "is above steps.ordinal");
  const std::uint64_t skipped = sum_of(history.skipped_steps);
  const auto wanted = static_cast<std::uint64_t>(report.loss_scale.skipped_steps);
  const bool whole = steps.front() <= history.interval && steps.back() == report.steps.ordinal;
  at["skipped_steps"].must(whole ? skipped == wanted : skipped <= wanted,
                           "adds up to {}, loss_scale.skipped_steps is {}",
                           skipped,
                           wanted);
}

}  // namespace

void check_nonfinite(const Json& document, Found& found) {
  if (!document.contains("nonfinite") || document.at("nonfinite").empty()) return;
  // Keys may contain dots and brackets themselves; of two values with the same path, the first is
  // used.
  std::unordered_map<std::string, const Json*> values;
  for (const auto& [path, kind] : document.at("nonfinite").items()) values.emplace(path, nullptr);
  walk(document, "", [&](const std::string& path, const Json& json) {
    const auto it = values.find(path);
    if (it != values.end() && it->second == nullptr) it->second = &json;
    return true;
  });
  const Member at = Member(found)["nonfinite"];
  for (const auto& [path, kind] : document.at("nonfinite").items()) {
    const Json* target = values.at(path);
    at[path].must(target != nullptr, "does not exist in this report");
    if (target == nullptr || target->is_null()) continue;
    at[path].must(false, "is {} there and must be null", repr(*target));
  }
}

void check(const TrainReport& report, Found& found) {
  const Member at(found);
  const Member scale = at["loss_scale"];
  check_exit_code(report.status, report.exit_code, ending_named(report.status).run, at);
  check_history(report.history, at["history"]);
  check_counters(report, at);
  check_step_time(report.step_time, at["step_time"]);
  check_attempts(report.steps, report.loss_scale.events, scale["events"]);
  check_attempts(report.steps, report.loss_scale.skips, scale["skips"]);
  check_skips(report.loss_scale, scale["skips"]);
  check_run_by_step(report, at["step_history"]);
}

void check(const EvalReport& report, Found& found) {
  if (!report.classes) return;
  const Member at = Member(found)["classes"]["per_class"];
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < report.classes->per_class.size(); ++i) {
    const ClassResult& row = report.classes->per_class[i];
    samples += static_cast<std::uint64_t>(row.count);
    at[i]["correct"].must(row.correct <= row.count, "is more than count");
  }
  at.must(static_cast<std::uint64_t>(report.samples) == samples,
          "counts {} samples, the report {}",
          samples,
          report.samples);
}

namespace {

/// "node" of "node:port".
std::string node_of(const std::string& input) { return input.substr(0, input.rfind(':')); }

/// `names` are those of the nodes; with emulated float16, casts read casts too.
void check_casts(const GraphRewriteReport& report, std::set<std::string> names, const Member& at) {
  for (const InsertedCast& cast : report.casts) names.insert(cast.name);
  std::int64_t to_half = 0;
  for (std::size_t i = 0; i < report.casts.size(); ++i) {
    const InsertedCast& cast = report.casts[i];
    const Member here = at["casts"][i];
    here["to"].must(cast.from != cast.to, "is the dtype cast from");
    if (analysis::is_half_name(cast.to)) ++to_half;
    here["input"].must(names.contains(node_of(cast.input)), "is not a port of a node or cast");
    for (std::size_t k = 0; k < cast.consumers.size(); ++k) {
      here["consumers"][k].must(names.contains(cast.consumers[k]), "is not a node or cast");
    }
  }
  at["casts_counted"].must(report.casts_counted <= to_half,
                           "is more than there are casts to 16 bits");
}

}  // namespace

void check(const GraphRewriteReport& report, Found& found) {
  const Member at(found);
  std::set<std::string> nodes;
  for (const RewrittenNode& node : report.nodes) nodes.insert(node.name);
  check_casts(report, nodes, at);
  for (std::size_t i = 0; i < report.paint.size(); ++i) {
    at["paint"][i]["node"].must(nodes.contains(report.paint[i].node), "is not a node");
  }
  at["message"].must(report.status != "failed" || !report.message.empty(),
                     "is null although the rewrite failed");
  if (report.status == "ok") return;
  at["converted_attrs"].must(report.converted_attrs == 0,
                             "is not 0 although nothing was rewritten");
  at["casts"].must(report.casts.empty(), "are present although nothing was rewritten");
}

void check(const ExplainReport& report, Found& found) {
  const Member at(found);
  double all = 0, half = 0;
  std::int64_t casts = 0;
  for (const analysis::ExplainedOp& op : report.ops) {
    all += op.info.flops;
    if (analysis::is_half_name(op.info.compute_dtype)) half += op.info.flops;
    if (op.info.type == "Cast") ++casts;
  }
  at["half_flops_share"].must_agree(
      report.half_flops_share, all > 0 ? half / all : 0, "the ops", report.ops.size());
  at["casts_executed"].must(report.casts <= casts, "is more than there are casts among the ops");
  at["rewrite"]["nodes_converted"].must(
      report.rewrite.nodes_converted <= report.rewrite.nodes_total, "is more than nodes_total");
}

}  // namespace halfstep::report
