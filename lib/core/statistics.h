#pragma once
// Statistics of one sample. Every function but median_interval takes the values in any order.
// Errors, all of them: InternalError for an empty sample.

#include <cstddef>
#include <span>

namespace halfstep {

struct Interval {
  double low = 0;
  double high = 0;

  bool operator==(const Interval&) const = default;
};

double mean(std::span<const double> sample);

/// The sample standard deviation, with n - 1 in the denominator; 0 for one value.
double stddev(std::span<const double> sample);

/// The middle value, or the mean of the two middle ones.
double median(std::span<const double> sample);

/// median(|x - median(x)|), without a factor.
double median_absolute_deviation(std::span<const double> sample);

/// The `percent`-th percentile, percent in [0, 100]: linear interpolation between the order
/// statistics at positions 0..n-1, h = (n - 1) percent / 100.
/// Source: Hyndman & Fan 1996, definition 7 (NumPy's default).
double percentile(std::span<const double> sample, double percent);

/// A confidence interval of the median, [x_(l), x_(n+1-l)] with the largest l for which the
/// coverage, 1 - 2 P(Binomial(n, 1/2) < l), is at least `confidence`; it assumes nothing about the
/// distribution. The whole range where n is too small for that (fewer than 6 at 95 %).
///
/// Neighbours with the same value are one measurement, as steps that a device does as one have its
/// mean: l is then that of the effective number of measurements, m = n^2 / sum(w^2) for w values of
/// each (Kish 1965), and the interval [x_(l n / m), x_(n + 1 - l n / m)].
Interval median_interval(std::span<const double> series, double confidence);

/// Modified z-score above which a value is an outlier: ten standard deviations of a normal sample
/// with the same median absolute deviation (1.48 of them each).
inline constexpr double k_outlier_score = 14.8;

/// Values with |x - median| / median_absolute_deviation > k_outlier_score.
std::size_t count_outliers(std::span<const double> sample);

}  // namespace halfstep
