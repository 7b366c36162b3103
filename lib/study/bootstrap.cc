#include "study/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace halfstep {
namespace {

/// Appends a resample of the same size, made of blocks of consecutive values (circular).
void draw_runs(std::span<const double> from, RandomStream& random, std::vector<double>& to) {
  const std::size_t n = from.size();
  const auto run = static_cast<std::size_t>(std::ceil(std::cbrt(static_cast<double>(n))));
  for (std::size_t drawn = 0; drawn < n; drawn += run) {
    const auto start = static_cast<std::size_t>(random.below(n));
    for (std::size_t i = 0; i < std::min(run, n - drawn); ++i) to.push_back(from[(start + i) % n]);
  }
}

/// The median, by partial sorting in place.
double median_in_place(std::vector<double>& values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  if (values.size() % 2 == 1) return *half;
  return std::midpoint(*std::max_element(values.begin(), half), *half);
}

double resampled_ratio(std::span<const TimedBlock> blocks, RandomStream random) {
  std::vector<double> baseline;
  std::vector<double> variant;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const TimedBlock& block = blocks[random.below(blocks.size())];
    draw_runs(block.baseline, random, baseline);
    draw_runs(block.variant, random, variant);
  }
  return median_in_place(baseline) / median_in_place(variant);
}

}  // namespace

report::RatioEstimate ratio_of_medians(std::span<const TimedBlock> blocks,
                                       const BootstrapOptions& options) {
  require(!blocks.empty(), "a ratio of no blocks");
  require(options.resamples >= 1, "{} resamples", options.resamples);
  std::vector<double> baseline;
  std::vector<double> variant;
  for (const TimedBlock& block : blocks) {
    require(!block.baseline.empty() && !block.variant.empty(), "a block with an empty side");
    baseline.insert(baseline.end(), block.baseline.begin(), block.baseline.end());
    variant.insert(variant.end(), block.variant.begin(), block.variant.end());
  }

  std::vector<double> ratios(static_cast<std::size_t>(options.resamples));
  parallel_for(options.resamples, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const RandomStream random(options.seed, static_cast<std::uint64_t>(i));
      ratios[static_cast<std::size_t>(i)] = resampled_ratio(blocks, random);
    }
  });
  const double tail = 50 * (1 - options.confidence);
  return {{median(baseline) / median(variant),
           Interval{percentile(ratios, tail), percentile(ratios, 100 - tail)},
           std::ssize(blocks)}};
}

}  // namespace halfstep
