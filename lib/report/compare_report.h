#pragma once
// The report of a comparison.

#include <map>
#include <string>

#include "report/context.h"
#include "train/comparison.h"
#include "train/session.h"

namespace halfstep::report {

/// What is known of a policy from its session, which is gone when the report is written.
struct PolicyFacts {
  Json precision;  ///< the `precision` block
  double flops_per_step = 0;
  std::map<std::string, double> op_flops;  ///< per launch, by node name
  std::vector<config::Warning> warnings;
};
PolicyFacts policy_facts(train::Session& session);
using FactsByPolicy = std::map<std::string, PolicyFacts>;

/// 5 when a gate failed, else 4 when a run diverged; 130 or 143 when asked to leave.
int exit_code(const train::Comparison& comparison);

/// `config` is the block of the config compared, null for finished runs.
Json compare_report(const train::Comparison& comparison,
                    const FactsByPolicy& facts,
                    const RunInfo& run,
                    Json context,
                    Json config);

/// {"value name": .., "ci95": [low, high] or null, "n": ..}; null without a value.
Json estimate_block(const std::optional<train::Estimate>& estimate, const char* value);
/// Each warning of the policies once.
Json merged_warnings(const FactsByPolicy& facts);
/// id, directory, start and end of a study.
Json study_run_block(const RunInfo& run);

}  // namespace halfstep::report
