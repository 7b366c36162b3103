#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/train_report.h"

namespace halfstep::report {

/// Seconds since 1970 of the start of a run's first process; 0 where it is not known.
double start_of(const TrainReport& report);

/// Batches drawn after the batch with this ordinal.
std::int64_t batches_after(std::int64_t ordinal);

/// When the epochs of a training run began and ended. A report holds how long each took, not when
/// it began: they are laid end to end from the start of the process that trained them.
struct EpochTime {
  std::int64_t epoch = 0;
  std::int64_t steps = 0;    ///< up to its end
  std::int64_t samples = 0;  ///< drawn up to its end
  double start = 0;          ///< s since 1970; of its first batch
  double trained = 0;        ///< end of its training steps
  double end = 0;            ///< end of its evaluation
};
std::vector<EpochTime> epoch_times(const TrainReport& report);

}  // namespace halfstep::report
