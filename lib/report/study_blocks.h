#pragma once
// Blocks of comparisons and benchmarks. Differences are policy - baseline, and a speedup above 1
// means that the policy is faster.

#include <optional>
#include <string>
#include <vector>

#include "core/ranges.h"
#include "report/blocks.h"

namespace halfstep::report {

/// A comparison or benchmark as a process.
struct StudyRun {
  std::string id, directory;
  std::vector<std::string> command;
  std::string started_at, ended_at;
  void fields(Fields& f);
};

/// The estimate of n repetitions. One repetition has no interval.
struct Estimate {
  double value = 0;
  std::optional<Interval> ci95;
  std::int64_t n = 0;
};
/// Estimates with the name that their value has in a report.
struct MeanEstimate : Estimate {
  void fields(Fields& f);
};
struct RatioEstimate : Estimate {
  void fields(Fields& f);
};

/// The policy of that name in a study; null where there is none.
template <class Policy>
const Policy* policy_named(const std::vector<Policy>& policies, const std::string& name) {
  return find_or_null(policies, name, &Policy::policy);
}

}  // namespace halfstep::report
