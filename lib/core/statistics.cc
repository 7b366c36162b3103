#include "core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace halfstep {
namespace {

std::vector<double> sorted(std::span<const double> sample) {
  require(!sample.empty(), "statistics of an empty sample");
  std::vector<double> values(sample.begin(), sample.end());
  std::ranges::sort(values);
  return values;
}

double median_of_sorted(std::span<const double> values) {
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : std::midpoint(values[half - 1], values[half]);
}

std::vector<double> deviations(std::span<const double> sample, double centre) {
  std::vector<double> distances;
  distances.reserve(sample.size());
  for (double x : sample) distances.push_back(std::abs(x - centre));
  return distances;
}

/// Kish's effective number of measurements, rounded down, of which equal neighbours are one.
std::size_t effective_size(std::span<const double> series) {
  std::size_t squares = 0, begin = 0;
  for (std::size_t i = 1; i <= series.size(); ++i) {
    if (i < series.size() && series[i] == series[begin]) continue;
    squares += (i - begin) * (i - begin);
    begin = i;
  }
  return series.size() * series.size() / squares;
}

/// The largest l with P(Binomial(n, 1/2) < l) <= tail; 0 when even l = 1 is too much.
std::size_t lower_rank(std::size_t n, double tail) {
  const double size = static_cast<double>(n);
  const auto probability = [&](std::size_t k) {
    const double x = static_cast<double>(k);
    return std::exp(std::lgamma(size + 1) - std::lgamma(x + 1) - std::lgamma(size - x + 1) -
                    size * std::numbers::ln2);
  };
  // More than twenty standard deviations below the mean the terms are below double precision.
  const double start = std::floor(size / 2 - 10 * std::sqrt(size));
  std::size_t rank = start > 0 ? static_cast<std::size_t>(start) : 0;
  double below = 0;
  for (;; ++rank) {
    below += probability(rank);
    if (below > tail || rank >= n / 2) return rank;
  }
}

}  // namespace

double mean(std::span<const double> sample) {
  require(!sample.empty(), "statistics of an empty sample");
  const double n = static_cast<double>(sample.size());
  double sum = 0;
  for (double x : sample) sum += x;
  const double first = sum / n;
  // Second pass: the mean of the residuals corrects the rounding error of the sum.
  double rest = 0;
  for (double x : sample) rest += x - first;
  return first + rest / n;
}

double stddev(std::span<const double> sample) {
  const double centre = mean(sample);
  if (sample.size() < 2) return 0;
  double sum = 0;
  for (double x : sample) sum += (x - centre) * (x - centre);
  return std::sqrt(sum / static_cast<double>(sample.size() - 1));
}

double median(std::span<const double> sample) { return median_of_sorted(sorted(sample)); }

double median_absolute_deviation(std::span<const double> sample) {
  return median(deviations(sample, median(sample)));
}

double percentile(std::span<const double> sample, double percent) {
  require(percent >= 0 && percent <= 100, "percentile {}", percent);
  const std::vector<double> values = sorted(sample);
  const double position = static_cast<double>(values.size() - 1) * percent / 100;
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= values.size()) return values.back();
  return std::lerp(values[below], values[below + 1], position - static_cast<double>(below));
}

Interval median_interval(std::span<const double> series, double confidence) {
  require(confidence > 0 && confidence < 1, "confidence {}", confidence);
  const std::vector<double> values = sorted(series);
  const std::size_t measurements = effective_size(series);
  const std::size_t rank = lower_rank(measurements, (1 - confidence) / 2);
  const std::size_t order = std::max<std::size_t>(rank * values.size() / measurements, 1);
  return {values[order - 1], values[values.size() - order]};
}

std::size_t count_outliers(std::span<const double> sample) {
  const std::vector<double> distances = deviations(sample, median(sample));
  const double limit = k_outlier_score * median(distances);
  return static_cast<std::size_t>(
      std::ranges::count_if(distances, [&](double d) { return d > limit; }));
}

}  // namespace halfstep
