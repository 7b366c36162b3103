#pragma once
// The time of each op of a step, from a separate pass in which every launch is timed.

#include <cstdint>
#include <functional>
#include <vector>

#include "train/bench_result.h"
#include "train/session.h"

namespace halfstep::study {

/// Medians over up to `steps` training steps of the full batch, after a few for warm-up; fewer,
/// possibly none, when `stop` returns true. Every step trains on the first samples.
struct OpProfile {
  std::int64_t steps = 0;
  std::vector<train::OpTime> ops;  ///< in launch order
};
OpProfile profile_ops(train::Session& session,
                      std::int64_t steps,
                      const std::function<bool()>& stop = {});

}  // namespace halfstep::study
