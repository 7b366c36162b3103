#include "report/compare_report.h"

#include <algorithm>

#include "core/system.h"
#include "report/precision_block.h"
#include "report/step_history_block.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

using train::ComparedPolicy;
using train::Comparison;
using train::Status;

Json disagreement_block(const std::optional<train::Disagreement>& d) {
  if (!d) return nullptr;
  return {{"b", d->b}, {"c", d->c}, {"p", number(d->p)}};
}

Json final_metrics(const train::ComparedRun& run, bool validation) {
  if (run.history.empty()) return nullptr;
  const train::EpochRecord& last = run.history.back();
  const train::Metrics& metrics = validation ? last.validation : last.train;
  return metrics.empty() ? Json(nullptr) : metrics_block(metrics);
}

Json run_entry(const train::ComparedRun& run) {
  Json epochs = Json::array();
  for (const train::EpochRecord& e : run.history) epochs.push_back(number(e.train_seconds));
  std::vector<std::string> metrics;
  for (const auto& [metric, value] :
       run.history.empty() ? train::Metrics{} : run.history[0].train) {
    if (metric != "loss") metrics.push_back(metric);
  }
  return {{"policy", utf8(run.policy)},
          {"seed", run.seed},
          {"status", name(run.status)},
          {"message", utf8(run.message)},
          {"source", run.source.empty() ? Json(nullptr) : Json(utf8(run.source))},
          {"config_sha256", run.config_sha256.empty() ? Json(nullptr) : Json(run.config_sha256)},
          {"steps",
           {{"attempted", run.counters.attempted},
            {"applied", run.counters.applied},
            {"ordinal", run.counters.ordinal}}},
          {"skipped_steps", run.counters.skipped},
          {"retried_steps", run.counters.retried},
          {"train", final_metrics(run, false)},
          {"val", final_metrics(run, true)},
          {"test", run.test.empty() ? Json(nullptr) : metrics_block(run.test)},
          {"history", history_block(run.history, metrics)},
          {"step_history", step_history_block(run.step_history)},
          {"step_time", step_time_block(run.step_time)},
          {"epoch_seconds", std::move(epochs)},
          {"train_seconds", number(run.train_seconds)},
          {"wall_seconds", number(run.wall_seconds)},
          {"time_to_accuracy", time_to_accuracy_block(run.time_to_accuracy)},
          {"final_loss_scale", number(run.final_scale)},
          {"init_hash", run.init_hash},
          {"batch_order_hash", run.batch_order_hash},
          {"final_hash", run.final_hash}};
}

Json pair_entry(const train::ComparedPair& pair, const std::string& baseline) {
  return {{"seed", pair.seed},
          {"policy", utf8(pair.policy)},
          {"baseline", utf8(baseline)},
          {"init_hash_equal", pair.init_hash_equal},
          {"batch_order_equal", pair.batch_order_equal},
          {"accuracy_delta", number(pair.metric_delta)},
          {"mcnemar", disagreement_block(pair.disagreement)}};
}

Json curve_block(const std::optional<train::CurveDifference>& c) {
  if (!c) return nullptr;
  return {{"n", c->n},
          {"steps", c->steps},
          {"mean_absolute", number(c->mean_absolute)},
          {"largest", number(c->largest)},
          {"last_tenth", number(c->last)}};
}

Json target_block(const std::optional<train::TargetTime>& t) {
  if (!t) return nullptr;
  return {{"runs", t->runs},
          {"reached", t->reached},
          {"train_seconds", number(t->train_seconds)},
          {"steps", number(t->steps)}};
}

Json metric_entries(const ComparedPolicy& policy) {
  Json entries = Json::object();
  for (const auto& [name, metric] : policy.metrics) {
    entries[name] = estimate_block(metric.mean, "mean");
    entries[name]["delta"] = estimate_block(metric.delta, "mean");
  }
  return entries;
}

Json policy_entry(const ComparedPolicy& policy,
                  const Comparison& comparison,
                  const FactsByPolicy& facts) {
  const auto metric = policy.metrics.find(comparison.metric);
  const bool judged = metric != policy.metrics.end();
  const auto named = [&](Json block) {
    if (!block.is_null()) block["metric"] = comparison.metric;
    return block;
  };
  Json mcnemar = disagreement_block(policy.disagreement);
  if (!mcnemar.is_null()) mcnemar["split"] = comparison.agreement_split;
  Json tost = nullptr;
  if (policy.equivalence) {
    tost = {{"margin", number(policy.equivalence->margin)},
            {"p", number(policy.equivalence->p)},
            {"equivalent", policy.equivalence->equivalent}};
  }
  Json time = nullptr;
  if (policy.step_time) {
    const Json all = estimate_block(policy.step_time, "median");
    time = {
        {"unit", "ms"}, {"n", all["n"]}, {"median", all["median"]}, {"median_ci95", all["ci95"]}};
  }
  const auto known = facts.find(policy.policy);
  return {{"policy", utf8(policy.policy)},
          {"baseline", policy.policy == comparison.baseline},
          {"runs", policy.runs},
          {"diverged", policy.diverged},
          {"skipped_steps", policy.skipped_steps},
          {"step_time", std::move(time)},
          {"speedup", estimate_block(policy.speedup, "ratio_of_medians")},
          {"accuracy", named(judged ? estimate_block(metric->second.mean, "mean") : Json(nullptr))},
          {"accuracy_delta",
           named(judged ? estimate_block(metric->second.delta, "mean") : Json(nullptr))},
          {"mcnemar", std::move(mcnemar)},
          {"tost", std::move(tost)},
          {"metrics", metric_entries(policy)},
          {"loss_curve", curve_block(policy.curve)},
          {"time_to_accuracy", target_block(policy.target)},
          {"flops_per_step",
           known == facts.end() ? Json(nullptr) : number(known->second.flops_per_step)},
          {"precision", known == facts.end() ? Json(nullptr) : known->second.precision}};
}

Json gate_entry(const train::GateResult& gate) {
  const auto known = [](const std::optional<bool>& b) { return b ? Json(*b) : Json(nullptr); };
  Json terms = Json::array();
  for (const train::GateTerm& term : gate.terms) {
    terms.push_back(
        {{"term", utf8(term.text)}, {"value", number(term.value)}, {"holds", known(term.holds)}});
  }
  return {{"expression", utf8(gate.expression)},
          {"holds", known(gate.holds)},
          {"failed", gate.failed()},
          {"terms", std::move(terms)}};
}

template <class T, class F>
Json list(const std::vector<T>& values, F entry) {
  Json entries = Json::array();
  for (const T& value : values) entries.push_back(entry(value));
  return entries;
}

}  // namespace

PolicyFacts policy_facts(train::Session& session) {
  PolicyFacts facts;
  facts.precision = precision_block(session);
  for (const OpRow& row :
       op_rows(session, session.plan(nn::Purpose::train, session.spec().training.batch_size))) {
    facts.flops_per_step += row.flops;
    facts.op_flops[row.name] = row.flops;
  }
  facts.warnings = session.warnings();
  return facts;
}

int exit_code(const Comparison& comparison) {
  if (comparison.status == Status::interrupted) return 130;
  // A comparison keeps nothing it could go on from.
  if (comparison.status == Status::preempted) return 143;
  const bool failed = std::any_of(comparison.gates.begin(),
                                  comparison.gates.end(),
                                  [](const train::GateResult& gate) { return gate.failed(); });
  if (failed) return static_cast<int>(ErrorKind::target);
  return comparison.status == Status::diverged && comparison.paired
             ? static_cast<int>(ErrorKind::numerics)
             : 0;
}

Json estimate_block(const std::optional<train::Estimate>& estimate, const char* value) {
  if (!estimate) return nullptr;
  Json block{{value, number(estimate->value)}};
  block["ci95"] = estimate->ci95
                      ? Json::array({number(estimate->ci95->low), number(estimate->ci95->high)})
                      : Json(nullptr);
  block["n"] = estimate->n;
  return block;
}

Json merged_warnings(const FactsByPolicy& facts) {
  Json merged = Json::array();
  for (const auto& [policy, known] : facts) {
    for (Json& warning : warnings(known.warnings)) {
      if (std::find(merged.begin(), merged.end(), warning) == merged.end()) {
        merged.push_back(std::move(warning));
      }
    }
  }
  return merged;
}

Json study_run_block(const RunInfo& run) {
  return {{"id", utf8(run.id)},
          {"directory", run.directory.empty() ? Json(nullptr) : Json(utf8(run.directory))},
          {"command", command_block(run)},
          {"started_at", run.started_at},
          {"ended_at", utc_now()}};
}

Json compare_report(const Comparison& comparison,
                    const FactsByPolicy& facts,
                    const RunInfo& run,
                    Json context,
                    Json config) {
  Json report{
      {"schema_version", 1},
      {"kind", "compare"},
      {"status", name(comparison.status)},
      {"exit_code", exit_code(comparison)},
      {"message", ""},
      {"run", study_run_block(run)},
      {"context", std::move(context)},
      {"config", std::move(config)},
      {"paired", comparison.paired},
      {"baseline", utf8(comparison.baseline)},
      {"metric", comparison.metric},
      {"margin", number(comparison.margin)},
      {"seeds", comparison.seeds},
      {"policies",
       list(comparison.policies,
            [&](const ComparedPolicy& p) { return policy_entry(p, comparison, facts); })},
      {"pairs",
       list(comparison.pairs,
            [&](const train::ComparedPair& p) { return pair_entry(p, comparison.baseline); })},
      {"runs", list(comparison.runs, run_entry)},
      {"gates", list(comparison.gates, gate_entry)},
      {"differences",
       list(comparison.differences,
            [](const train::ConfigDifference& d) {
              return Json{{"path", utf8(d.path)},
                          {"values", list(d.values, [](const std::string& v) { return utf8(v); })}};
            })},
      {"notes", list(comparison.notes, [](const std::string& note) { return utf8(note); })},
      {"warnings", merged_warnings(facts)}};
  name_nonfinite(report);
  return report;
}

}  // namespace halfstep::report
