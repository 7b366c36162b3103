#pragma once
// The report of a benchmark.

#include <string>

#include "report/compare_report.h"

namespace halfstep::report {

/// Launches of a profile with the same value of a member.
struct TimeShare {
  std::string name;  ///< "-" for launches without one
  std::int64_t launches = 0;
  double ms = 0, share = 0;  ///< share of the time of all launches
  std::optional<double> achieved_tflops, achieved_gbs;

  /// `member`: the member that holds the name.
  void describe(Fields& f, std::string_view member);
};
struct TypeShare : TimeShare {
  void fields(Fields& f) { describe(f, "type"); }
};
struct LayerShare : TimeShare {
  void fields(Fields& f) { describe(f, "layer"); }
};
struct PhaseShare : TimeShare {
  void fields(Fields& f) { describe(f, "phase"); }
};

/// The time of one launch: the median over the profiled steps.
struct ProfiledOp {
  std::string name, type, layer, phase, kernel;
  std::string algorithm;  ///< "" where no library chose one
  double ms = 0, share = 0;
  std::optional<double> predicted_ms;  ///< on a device
  std::optional<double> achieved_tflops, achieved_gbs;
  void fields(Fields& f);
};

/// Times from a separate pass in which every launch is timed.
struct Profile {
  std::string scope;
  std::int64_t steps = 0;
  double total_ms = 0;
  std::optional<double> predicted_ms;  ///< of these launches, on a device
  std::vector<TypeShare> by_type;
  std::vector<LayerShare> by_layer;
  std::vector<PhaseShare> by_phase;
  std::vector<ProfiledOp> ops;
  void fields(Fields& f);
};

/// The measurements of one policy.
struct Measured {
  StepTime step_time;
  std::vector<StepTime> repeats;
  std::optional<MeanEstimate> repeat_median;  ///< mean of the repeats' medians
  Throughput throughput;
  train::MemoryUse memory;
  std::int64_t skipped_steps = 0;
  void fields(Fields& f);
};

/// One policy. The ops and the profile of the first are at the top of the report only.
struct BenchPolicy {
  std::string policy;
  std::optional<RatioEstimate> speedup;
  std::optional<analysis::PrecisionSummary> precision;
  Measured measured;
  MaybeNull<Profile> profile;
  void fields(Fields& f);
};

struct BenchRequest {
  std::int64_t seed = 0;
  std::string data;
  std::int64_t batch_size = 0, warmup = 0, steps = 0, repeats = 0;
  std::string policy;
  void fields(Fields& f);
};

/// The blocks of a training report that apply, for the first policy, and all policies in
/// `policies`.
struct BenchReport {
  static constexpr std::string_view k_kind = "bench", k_doc = "a benchmark";
  std::string status;
  std::int64_t exit_code = 0;
  std::string message;
  StudyRun run;
  Context context;
  ConfigBlock config;
  BenchRequest bench;
  std::optional<analysis::Precision> precision;
  Measured measured;
  std::optional<Profile> profile;
  std::vector<BenchPolicy> policies;
  std::vector<std::string> notes;
  std::vector<WarningBlock> warnings;
  NonfiniteMap nonfinite;
  void fields(Fields& f);

  /// The profile and the ops of policy `index`; null if there are none.
  const Profile* profile_of(std::size_t index) const;
  const std::vector<analysis::OpInfo>* ops_of(std::size_t index) const;
};

/// 4 when a run diverged; 130 or 143 after a stop request.
int exit_code(const BenchReport& report);

}  // namespace halfstep::report
