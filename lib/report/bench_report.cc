#include "report/bench_report.h"

#include <algorithm>

#include "report/run_index.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

using train::BenchedPolicy;
using train::BenchResult;
using train::OpTime;

constexpr std::string_view k_tflops = "10^12 operations per second";
constexpr std::string_view k_gbs = "10^9 bytes of operands and results per second";

const PolicyFacts* find(const FactsByPolicy& facts, const std::string& policy) {
  const auto it = facts.find(policy);
  return it == facts.end() ? nullptr : &it->second;
}

double total_milliseconds(const std::vector<OpTime>& profile) {
  double total = 0;
  for (const OpTime& op : profile) total += op.milliseconds;
  return total;
}

/// `count` per time; nothing for a count of zero.
std::optional<double> per_second(double count, double milliseconds, double unit) {
  if (!(count > 0 && milliseconds > 0)) return std::nullopt;
  return count / milliseconds / unit;
}
std::optional<double> tera_flops(double flops, double milliseconds) {
  return per_second(flops, milliseconds, 1e9);
}
std::optional<double> giga_bytes(double bytes, double milliseconds) {
  return per_second(bytes, milliseconds, 1e6);
}

using OpFlops = std::map<std::string, double>;

double flops_of(const OpTime& op, const OpFlops& op_flops) {
  const auto it = op_flops.find(op.name);
  return it == op_flops.end() ? 0 : it->second;
}

/// Groups launches by one of their names, the slowest group first.
template <class Share>
std::vector<Share> time_shares(const std::vector<OpTime>& profile,
                               std::string OpTime::*word,
                               const OpFlops& op_flops) {
  struct Group {
    Share share;
    double flops = 0, bytes = 0;
  };
  std::map<std::string, Group> groups;
  for (const OpTime& op : profile) {
    const std::string name = (op.*word).empty() ? "-" : op.*word;
    Group& group = groups[name];
    group.share.name = name;
    ++group.share.launches;
    group.share.ms += op.milliseconds;
    group.bytes += op.bytes;
    group.flops += flops_of(op, op_flops);
  }
  const double total = total_milliseconds(profile);
  std::vector<Share> shares;
  for (auto& [name, group] : groups) {
    Share& share = group.share;
    share.share = total > 0 ? share.ms / total : 0;
    share.achieved_tflops = tera_flops(group.flops, share.ms);
    share.achieved_gbs = giga_bytes(group.bytes, share.ms);
    shares.push_back(std::move(share));
  }
  std::stable_sort(
      shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.ms > b.ms; });
  return shares;
}

std::optional<Profile> profile_block(const BenchedPolicy& policy, const PolicyFacts* facts) {
  if (policy.profile.empty()) return std::nullopt;
  const OpFlops flops = facts != nullptr ? facts->op_flops : OpFlops();
  Profile block;
  block.scope = "a pass of its own in which every launch is timed; medians";
  block.steps = policy.profiled_steps;
  block.total_ms = total_milliseconds(policy.profile);
  block.by_type = time_shares<TypeShare>(policy.profile, &OpTime::op, flops);
  block.by_layer = time_shares<LayerShare>(policy.profile, &OpTime::layer, flops);
  block.by_phase = time_shares<PhaseShare>(policy.profile, &OpTime::phase, flops);
  for (const OpTime& op : policy.profile) {
    block.ops.push_back({op.name,
                         op.op,
                         op.layer,
                         op.phase,
                         op.kernel,
                         op.milliseconds,
                         block.total_ms > 0 ? op.milliseconds / block.total_ms : 0,
                         tera_flops(flops_of(op, flops), op.milliseconds),
                         giga_bytes(op.bytes, op.milliseconds)});
  }
  return block;
}

std::optional<RatioEstimate> ratio_block(const std::optional<train::Estimate>& estimate) {
  return estimate ? std::optional(RatioEstimate{*estimate}) : std::nullopt;
}

Measured measured_block(const BenchedPolicy& policy, const PolicyFacts* facts) {
  Measured block;
  block.step_time = step_time_block(policy.step_time);
  for (const train::StepTimeSummary& repeat : policy.repeats) {
    block.repeats.push_back(step_time_block(repeat));
  }
  if (policy.repeat_median.n > 0) block.repeat_median = MeanEstimate{policy.repeat_median};
  block.throughput =
      throughput_block(policy.step_time, facts != nullptr ? facts->flops_per_step : 0);
  block.memory = policy.memory;
  block.skipped_steps = policy.skipped_steps;
  return block;
}

BenchPolicy policy_block(const BenchedPolicy& policy, const PolicyFacts* facts, bool first) {
  BenchPolicy block;
  block.policy = policy.policy;
  block.speedup = ratio_block(policy.speedup);
  if (facts != nullptr) {
    block.precision.emplace();
    static_cast<PrecisionHead&>(*block.precision) = facts->precision;
    if (!first) block.precision->ops = facts->precision.ops;
  }
  block.measured = measured_block(policy, facts);
  if (!first) block.profile = profile_block(policy, facts);
  return block;
}

constexpr FieldOptions k_shares{.doc = "slowest first", .each = "launches that have it in common"};

}  // namespace

void TimeShare::describe(Fields& f, std::string_view word) {
  f(word, name, "- for launches without one");
  f("launches", launches, {.doc = "in a step", .min = 1});
  f("ms", ms, "ms in a step");
  f.fraction("share", share, "of all launches");
  f("achieved_tflops", achieved_tflops, k_tflops);
  f("achieved_gbs", achieved_gbs, k_gbs);
}

void ProfiledOp::fields(Fields& f) {
  f("name", name, "node of the step graph");
  f("type", type, "op");
  f("layer", layer, "of the config; empty outside of layers");
  f("phase", phase, "input, forward, loss, backward, ...");
  f("kernel", kernel, "implementation that ran");
  f("ms", ms, "ms; median over the profiled steps");
  f.fraction("share", share, "of all launches");
  f("achieved_tflops", achieved_tflops, k_tflops);
  f("achieved_gbs", achieved_gbs, k_gbs);
}

void Profile::fields(Fields& f) {
  f("scope", scope, "how the launches were timed");
  f("steps", steps, {.doc = "profiled", .min = 1});
  f("total_ms", total_ms, "ms in the launches of a step");
  f("by_type", by_type, k_shares);
  f("by_layer", by_layer, k_shares);
  f("by_phase", by_phase, k_shares);
  f("ops", ops, {.doc = "in order", .each = "one launch of a step"});
}

void Measured::fields(Fields& f) {
  f("step_time", step_time, "times of steady steps");
  f("repeats", repeats, {.doc = "the same for each repeat alone", .each = "times of steady steps"});
  f("repeat_median", repeat_median, "of the repeats' medians, ms");
  f("throughput", throughput, "rates at the median step time");
  f("memory", memory, "memory, in bytes");
  f("skipped_steps", skipped_steps, "of all repeats");
}

void BenchPolicy::fields(Fields& f) {
  f("policy", policy, "measured");
  f("speedup", speedup, "over the first policy; null for it");
  f("precision", precision, "requested and effective precision");
  measured.fields(f);
  f("profile", profile, {.doc = "time per launch; null unless asked for", .left_out = true});
}

void BenchRequest::fields(Fields& f) {
  f("seed", seed, "of weights, order and dropout");
  f("data", data, "name of the set; random for made-up samples");
  f("batch_size", batch_size, {.doc = "samples of a step", .min = 1});
  f("warmup", warmup, "steps that warm up, per repeat");
  f("steps", steps, {.doc = "counted, per repeat", .min = 1});
  f("repeats", repeats, {.doc = "fresh starts", .min = 1});
  f("policy", policy, "the first, of which the blocks below tell");
}

void BenchReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.word("status", status, study_statuses(), "how the benchmark ended");
  f("exit_code", exit_code, "of the process");
  f("message", message, "why it ended; empty when completed");
  f("run", run, "the study");
  f("context", context, "where and by what the report was made");
  f("config", config, "what was asked for");
  f("bench", bench, "what was asked for");
  f("precision", precision, "requested and effective precision");
  measured.fields(f);
  f("profile", profile, "time per launch; null unless asked for");
  f("policies",
    policies,
    {.doc = "in the order asked for",
     .each = "one policy; what stands above for the first is not repeated in full"});
  f("notes", notes, "what to know before believing the numbers");
  describe_warnings(f, warnings);
  describe_nonfinite(f, nonfinite);
}

const Profile* BenchReport::profile_of(std::size_t index) const {
  if (index == 0) return profile ? &*profile : nullptr;
  const auto& own = policies[index].profile;
  return own && *own ? &**own : nullptr;
}

const std::vector<OpRow>* BenchReport::ops_of(std::size_t index) const {
  if (index == 0) return precision ? &precision->ops : nullptr;
  const auto& own = policies[index].precision;
  return own && own->ops ? &*own->ops : nullptr;
}

int exit_code(const BenchResult& result) { return ending_of(result.status).study[0]; }

BenchReport bench_report(const BenchResult& result,
                         const FactsByPolicy& facts,
                         const RunInfo& run,
                         const Context& context,
                         ConfigBlock config) {
  const BenchedPolicy& first = result.policies.front();
  const PolicyFacts* known = find(facts, first.policy);
  BenchReport report;
  report.status = name(result.status);
  report.exit_code = exit_code(result);
  report.message = result.message;
  report.run = study_run(run);
  report.context = context;
  report.config = std::move(config);
  report.bench = {result.seed,
                  result.data,
                  result.batch_size,
                  result.warmup,
                  result.steps,
                  result.repeats,
                  first.policy};
  if (known != nullptr) report.precision = known->precision;
  report.measured = measured_block(first, known);
  report.profile = profile_block(first, known);
  for (const BenchedPolicy& policy : result.policies) {
    report.policies.push_back(policy_block(policy, find(facts, policy.policy), &policy == &first));
  }
  report.notes = result.notes;
  report.warnings = merged_warnings(facts);
  report.nonfinite = tidy(field_ref(report));
  return report;
}

}  // namespace halfstep::report
