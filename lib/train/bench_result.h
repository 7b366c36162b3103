#pragma once
// The results of a benchmark as plain values.

#include <optional>
#include <string>
#include <vector>

#include "train/comparison.h"

namespace halfstep::train {

/// The time of one launch, from a separate pass in which every launch is timed.
struct OpTime {
  std::string name;
  std::string op;
  std::string layer;
  std::string phase;
  std::string kernel;
  double milliseconds = 0;  ///< median over the profiled steps
  double bytes = 0;  ///< of operands and results, each once; a variable that is updated twice
};

struct BenchedPolicy {
  std::string policy;
  std::vector<StepTimeSummary> repeats;
  StepTimeSummary step_time;        ///< over the counted steps of all repeats
  Estimate repeat_median;           ///< mean of the repeats' medians with its t interval
  std::optional<Estimate> speedup;  ///< over the first policy; absent for it
  std::int64_t skipped_steps = 0;
  MemoryUse memory;
  std::int64_t profiled_steps = 0;
  std::vector<OpTime> profile;  ///< in launch order; empty unless requested
};

struct BenchResult {
  Status status = Status::completed;
  std::string message;
  std::int64_t seed = 0;
  std::string data;  ///< name of the set; "random" for made-up samples
  std::int64_t batch_size = 0;
  std::int64_t steps = 0;  ///< requested, per repeat
  std::int64_t warmup = 0;
  std::int64_t repeats = 0;
  std::vector<BenchedPolicy> policies;
  std::vector<std::string> notes;
};

}  // namespace halfstep::train
