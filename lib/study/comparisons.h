#pragma once
// Statistical tests of the difference between two ways of training.

#include <cstdint>
#include <span>

#include "core/statistics.h"

namespace halfstep {

struct MeanEstimate {
  double mean = 0;
  Interval interval;
  std::int64_t n = 0;
};

/// The mean and its Student t interval, mean +- t s / sqrt(n). For a single value the interval is
/// infinite. Errors: InternalError for an empty sample.
MeanEstimate t_interval(std::span<const double> sample, double confidence = 0.95);

/// The mean without the smallest and the largest value, from five values up; for fewer, of all
/// values.
double mean_without_extremes(std::span<const double> sample);

/// A paired t test: is the mean of the differences zero?
struct PairedT {
  MeanEstimate difference;  ///< of variant - baseline, with the 95 % interval
  double t = 0;
  double dof = 0;
  double p = 1;  ///< two-sided
};

/// Pairs are variant[i] with baseline[i]. With zero variance p is 0, or 1 when the mean is zero
/// too; one pair gives p = 1. Errors: InternalError for unequal or zero sizes.
PairedT paired_t(std::span<const double> baseline, std::span<const double> variant);

/// Two one-sided t tests: is the mean of the differences within +-margin?
struct Equivalence {
  double margin = 0;
  double p = 1;  ///< the larger of the two one-sided p values
  bool equivalent = false;
};

/// Equivalent when p < alpha, that is when the 1 - 2 alpha interval of the mean is within the
/// margin. One difference gives p = 1. Errors: InternalError unless margin > 0. Source: Schuirmann
/// 1987.
Equivalence equivalence(std::span<const double> differences, double margin, double alpha = 0.05);

/// McNemar's exact test on the examples that only one of two models classifies correctly.
struct McNemar {
  std::int64_t b = 0;  ///< correct in the baseline only
  std::int64_t c = 0;  ///< correct in the variant only
  double p = 1;        ///< two-sided, from Binomial(b + c, 1/2)
};

McNemar mcnemar(std::int64_t b, std::int64_t c);

/// Arguments: 1 for a correct answer, 0 for a wrong one, over the same examples. Errors:
/// InternalError for unequal sizes.
McNemar mcnemar(std::span<const std::uint8_t> baseline_right,
                std::span<const std::uint8_t> variant_right);

/// Wilson's score interval of a proportion. Errors: InternalError unless 0 <= successes <= n, n >
/// 0. Source: Wilson 1927.
Interval wilson_interval(std::int64_t successes, std::int64_t n, double confidence = 0.95);

}  // namespace halfstep
