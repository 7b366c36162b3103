#pragma once
// Where a step's time goes: a pass of its own, in which every launch is timed.

#include <cstdint>
#include <functional>
#include <vector>

#include "train/bench_result.h"
#include "train/session.h"

namespace halfstep::study {

/// Medians over up to `steps` training steps of the full batch, after a few that warm up; fewer
/// when `stop` says so, none at all then possibly. Every step trains on the first rows.
struct OpProfile {
  std::int64_t steps = 0;
  std::vector<train::OpTime> ops;  ///< in launch order
};
OpProfile profile_ops(train::Session& session,
                      std::int64_t steps,
                      const std::function<bool()>& stop = {});

}  // namespace halfstep::study
