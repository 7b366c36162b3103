#include "report/bench_report.h"

#include <algorithm>

#include "report/train_report.h"

namespace halfstep::report {
namespace {

using train::BenchedPolicy;
using train::BenchResult;
using train::OpTime;
using train::Status;

const PolicyFacts* find(const FactsByPolicy& facts, const std::string& policy) {
  const auto it = facts.find(policy);
  return it == facts.end() ? nullptr : &it->second;
}

double total_milliseconds(const std::vector<OpTime>& profile) {
  double total = 0;
  for (const OpTime& op : profile) total += op.milliseconds;
  return total;
}

/// Floating-point operations in a time, as 10^12 a second; null where none are counted.
Json tera_per_second(double flops, double milliseconds) {
  return flops > 0 && milliseconds > 0 ? number(flops / milliseconds / 1e9) : Json(nullptr);
}

/// Bytes in a time, as 10^9 a second; null where there are none.
Json giga_per_second(double bytes, double milliseconds) {
  return bytes > 0 && milliseconds > 0 ? number(bytes / milliseconds / 1e6) : Json(nullptr);
}

Json shares_block(const std::vector<TimeShare>& shares, const char* word) {
  Json block = Json::array();
  for (const TimeShare& s : shares) {
    block.push_back({{word, utf8(s.name)},
                     {"launches", s.launches},
                     {"ms", number(s.milliseconds)},
                     {"share", number(s.share)},
                     {"achieved_tflops", tera_per_second(s.flops, s.milliseconds)},
                     {"achieved_gbs", giga_per_second(s.bytes, s.milliseconds)}});
  }
  return block;
}

Json profile_block(const BenchedPolicy& policy, const PolicyFacts* facts) {
  if (policy.profile.empty()) return nullptr;
  static const std::map<std::string, double> k_none;
  const std::map<std::string, double>& flops = facts != nullptr ? facts->op_flops : k_none;
  const double total = total_milliseconds(policy.profile);
  Json ops = Json::array();
  for (const OpTime& op : policy.profile) {
    const auto it = flops.find(op.name);
    const double op_flops = it == flops.end() ? 0 : it->second;
    ops.push_back({{"name", utf8(op.name)},
                   {"type", op.op},
                   {"layer", utf8(op.layer)},
                   {"phase", op.phase},
                   {"kernel", op.kernel},
                   {"ms", number(op.milliseconds)},
                   {"share", number(total > 0 ? op.milliseconds / total : 0)},
                   {"achieved_tflops", tera_per_second(op_flops, op.milliseconds)},
                   {"achieved_gbs", giga_per_second(op.bytes, op.milliseconds)}});
  }
  return {{"scope", "a pass of its own in which every launch is timed; medians"},
          {"steps", policy.profiled_steps},
          {"total_ms", number(total)},
          {"by_type", shares_block(time_shares(policy.profile, &OpTime::op, flops), "type")},
          {"by_layer", shares_block(time_shares(policy.profile, &OpTime::layer, flops), "layer")},
          {"by_phase", shares_block(time_shares(policy.profile, &OpTime::phase, flops), "phase")},
          {"ops", std::move(ops)}};
}

/// The blocks of one policy that a train report has too.
Json policy_blocks(const BenchedPolicy& policy, const PolicyFacts* facts) {
  Json repeats = Json::array();
  for (const train::StepTimeSummary& repeat : policy.repeats) {
    repeats.push_back(step_time_block(repeat));
  }
  return {
      {"precision", facts != nullptr ? facts->precision : Json(nullptr)},
      {"step_time", step_time_block(policy.step_time)},
      {"repeats", std::move(repeats)},
      {"repeat_median",
       policy.repeat_median.n == 0 ? Json(nullptr) : estimate_block(policy.repeat_median, "mean")},
      {"throughput",
       throughput_block(policy.step_time, facts != nullptr ? facts->flops_per_step : 0)},
      {"memory", memory_block(policy.memory)},
      {"skipped_steps", policy.skipped_steps},
      {"profile", profile_block(policy, facts)}};
}

}  // namespace

std::vector<TimeShare> time_shares(const std::vector<OpTime>& profile,
                                   std::string OpTime::*word,
                                   const std::map<std::string, double>& op_flops) {
  std::map<std::string, TimeShare> groups;
  const double total = total_milliseconds(profile);
  for (const OpTime& op : profile) {
    const std::string name = (op.*word).empty() ? "-" : op.*word;
    TimeShare& group = groups[name];
    group.name = name;
    ++group.launches;
    group.milliseconds += op.milliseconds;
    group.bytes += op.bytes;
    const auto flops = op_flops.find(op.name);
    if (flops != op_flops.end()) group.flops += flops->second;
  }
  std::vector<TimeShare> shares;
  for (auto& [name, group] : groups) {
    group.share = total > 0 ? group.milliseconds / total : 0;
    shares.push_back(group);
  }
  std::stable_sort(shares.begin(), shares.end(), [](const TimeShare& a, const TimeShare& b) {
    return a.milliseconds > b.milliseconds;
  });
  return shares;
}

int exit_code(const BenchResult& result) {
  switch (result.status) {
    case Status::interrupted:
      return 130;
    case Status::preempted:
      return 143;
    case Status::diverged:
      return static_cast<int>(ErrorKind::numerics);
    default:
      return 0;
  }
}

Json bench_report(const BenchResult& result,
                  const FactsByPolicy& facts,
                  const RunInfo& run,
                  Json context,
                  Json config) {
  Json report{{"schema_version", 1},
              {"kind", "bench"},
              {"status", name(result.status)},
              {"exit_code", exit_code(result)},
              {"message", utf8(result.message)},
              {"run", study_run_block(run)},
              {"context", std::move(context)},
              {"config", std::move(config)},
              {"bench",
               {{"seed", result.seed},
                {"data", utf8(result.data)},
                {"batch_size", result.batch_size},
                {"warmup", result.warmup},
                {"steps", result.steps},
                {"repeats", result.repeats},
                {"policy", utf8(result.policies.front().policy)}}}};
  const BenchedPolicy& first = result.policies.front();
  const Json blocks = policy_blocks(first, find(facts, first.policy));
  for (const auto& [key, block] : blocks.items()) report[key] = block;

  Json policies = Json::array();
  for (const BenchedPolicy& policy : result.policies) {
    Json entry{{"policy", utf8(policy.policy)},
               {"speedup", estimate_block(policy.speedup, "ratio_of_medians")}};
    Json own = policy_blocks(policy, find(facts, policy.policy));
    // What the first policy has stands above already; every op once more would say nothing new.
    if (&policy == &first && own["precision"].is_object()) own["precision"].erase("ops");
    if (&policy == &first) own.erase("profile");
    for (auto& [key, block] : own.items()) entry[key] = std::move(block);
    policies.push_back(std::move(entry));
  }
  report["policies"] = std::move(policies);
  Json notes = Json::array();
  for (const std::string& note : result.notes) notes.push_back(utf8(note));
  report["notes"] = std::move(notes);
  report["warnings"] = merged_warnings(facts);
  name_nonfinite(report);
  return report;
}

}  // namespace halfstep::report
