#include "study/comparisons.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "study/distributions.h"

namespace halfstep {
namespace {

double standard_error(std::span<const double> sample) {
  return stddev(sample) / std::sqrt(static_cast<double>(sample.size()));
}

/// P(T > t) for an estimate that is `distance` above a bound, with this standard error.
double p_above(double distance, double error, double dof) {
  if (error == 0) return distance > 0 ? 0 : 1;
  return student_t_cdf(-distance / error, dof);
}

}  // namespace

MeanEstimate t_interval(std::span<const double> sample, double confidence) {
  require(confidence > 0 && confidence < 1, "confidence {}", confidence);
  const double centre = mean(sample);
  const auto n = static_cast<std::int64_t>(sample.size());
  constexpr double k_infinity = std::numeric_limits<double>::infinity();
  if (n == 1) return {centre, {-k_infinity, k_infinity}, n};
  const double half =
      student_t_quantile(0.5 + confidence / 2, static_cast<double>(n - 1)) * standard_error(sample);
  return {centre, {centre - half, centre + half}, n};
}

double mean_without_extremes(std::span<const double> sample) {
  if (sample.size() < 5) return mean(sample);
  std::vector<double> values(sample.begin(), sample.end());
  std::sort(values.begin(), values.end());
  return mean(std::span(values).subspan(1, values.size() - 2));
}

PairedT paired_t(std::span<const double> baseline, std::span<const double> variant) {
  require(baseline.size() == variant.size(),
          "{} values paired with {}",
          baseline.size(),
          variant.size());
  std::vector<double> differences;
  differences.reserve(baseline.size());
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    differences.push_back(variant[i] - baseline[i]);
  }
  PairedT result;
  result.difference = t_interval(differences);
  result.dof = static_cast<double>(differences.size()) - 1;
  if (differences.size() == 1) return result;
  const double error = standard_error(differences);
  const double centre = result.difference.mean;
  result.t = centre == 0 ? 0 : centre / error;
  result.p = centre == 0 ? 1 : std::min(1.0, 2 * p_above(std::abs(centre), error, result.dof));
  return result;
}

Equivalence equivalence(std::span<const double> differences, double margin, double alpha) {
  require(margin > 0, "margin {}", margin);
  require(alpha > 0 && alpha < 0.5, "alpha {}", alpha);
  Equivalence result{.margin = margin};
  const double centre = mean(differences);
  if (differences.size() == 1) return result;
  const double error = standard_error(differences);
  const double dof = static_cast<double>(differences.size()) - 1;
  result.p = std::max(p_above(centre + margin, error, dof), p_above(margin - centre, error, dof));
  result.equivalent = result.p < alpha;
  return result;
}

McNemar mcnemar(std::int64_t b, std::int64_t c) {
  require(b >= 0 && c >= 0, "counts {} and {}", b, c);
  return {b, c, std::min(1.0, 2 * binomial_half_cdf(std::min(b, c), b + c))};
}

McNemar mcnemar(std::span<const std::uint8_t> baseline_right,
                std::span<const std::uint8_t> variant_right) {
  require(baseline_right.size() == variant_right.size(),
          "{} answers compared with {}",
          baseline_right.size(),
          variant_right.size());
  std::int64_t b = 0;
  std::int64_t c = 0;
  for (std::size_t i = 0; i < baseline_right.size(); ++i) {
    const bool first = baseline_right[i] != 0;
    const bool second = variant_right[i] != 0;
    b += first && !second ? 1 : 0;
    c += second && !first ? 1 : 0;
  }
  return mcnemar(b, c);
}

Interval wilson_interval(std::int64_t successes, std::int64_t n, double confidence) {
  require(n > 0 && successes >= 0 && successes <= n, "{} of {}", successes, n);
  require(confidence > 0 && confidence < 1, "confidence {}", confidence);
  const double z = normal_quantile(0.5 + confidence / 2);
  const double size = static_cast<double>(n);
  const double p = static_cast<double>(successes) / size;
  const double scale = 1 / (1 + z * z / size);
  const double centre = scale * (p + z * z / (2 * size));
  const double half = scale * z * std::sqrt(p * (1 - p) / size + z * z / (4 * size * size));
  // At the ends the formula gives 0 and 1 up to rounding.
  return {successes == 0 ? 0 : centre - half, successes == n ? 1 : centre + half};
}

}  // namespace halfstep
