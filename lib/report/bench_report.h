#pragma once
// The report of a benchmark.

#include <string>

#include "report/compare_report.h"
#include "train/bench_result.h"

namespace halfstep::report {

/// 4 when a run diverged; 130 or 143 when asked to leave.
int exit_code(const train::BenchResult& result);

/// The blocks of a train report that apply, of the first policy, and all policies in `policies`.
Json bench_report(const train::BenchResult& result,
                  const FactsByPolicy& facts,
                  const RunInfo& run,
                  Json context,
                  Json config);

/// Launches of a profile that have a word in common, the slowest group first.
struct TimeShare {
  std::string name;  ///< "-" for launches without one
  std::int64_t launches = 0;
  double milliseconds = 0;
  double share = 0;  ///< of all launches
  double flops = 0;
  double bytes = 0;
};

/// Groups by one of OpTime's words.
std::vector<TimeShare> time_shares(const std::vector<train::OpTime>& profile,
                                   std::string train::OpTime::*word,
                                   const std::map<std::string, double>& op_flops);

}  // namespace halfstep::report
