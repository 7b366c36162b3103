#pragma once
// The uncertainty of a ratio of medians, by resampling.

#include <cstdint>
#include <span>
#include <vector>

#include "core/statistics.h"

namespace halfstep {

/// Step times of both sides from the same stretch of an interleaved measurement: the same seed, the
/// same minute. What disturbs the machine then disturbs both.
struct TimedBlock {
  std::vector<double> baseline;
  std::vector<double> variant;
};

struct BootstrapOptions {
  std::uint64_t seed = 0;
  std::int64_t resamples = 2000;
  double confidence = 0.95;
};

struct RatioEstimate {
  double ratio = 1;
  Interval interval;
};

/// median(baseline) / median(variant) over all blocks, above 1 when the variant is faster, with a
/// percentile bootstrap interval. Each resample draws blocks with replacement, both sides of a
/// block together, and within a block runs of n^(1/3) neighbouring steps, since neighbours resemble
/// each other. The same seed gives the same interval on every machine and thread count. Errors:
/// InternalError without blocks, or for a block with an empty side. Source: Künsch 1989 (runs of
/// neighbours).
RatioEstimate ratio_of_medians(std::span<const TimedBlock> blocks,
                               const BootstrapOptions& options = {});

}  // namespace halfstep
