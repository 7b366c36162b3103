#pragma once
// The uncertainty of a ratio of medians, by bootstrap.

#include <cstdint>
#include <span>
#include <vector>

#include "report/study_blocks.h"

namespace halfstep {

/// Step times of baseline and variant from the same interval of an interleaved measurement, with
/// the same seed. Disturbances of the machine then affect both.
struct TimedBlock {
  std::vector<double> baseline;
  std::vector<double> variant;
};

struct BootstrapOptions {
  std::uint64_t seed = 0;
  std::int64_t resamples = 2000;
  double confidence = 0.95;
};

/// median(baseline) / median(variant) over all blocks, above 1 when the variant is faster, with a
/// percentile bootstrap interval; n is the number of blocks. Each resample draws blocks with
/// replacement, baseline and variant of a block together, and within a block runs of n^(1/3)
/// consecutive steps, since consecutive steps are correlated. The same seed gives the same interval
/// on every machine and thread count. Errors: InternalError without blocks, or for a block without
/// baseline or variant. Source: Künsch 1989 (moving block bootstrap).
report::RatioEstimate ratio_of_medians(std::span<const TimedBlock> blocks,
                                       const BootstrapOptions& options = {});

}  // namespace halfstep
