#include "study/comparisons.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

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

report::MeanEstimate t_interval(std::span<const double> sample, double confidence) {
  require(confidence > 0 && confidence < 1, "confidence {}", confidence);
  const double centre = mean(sample);
  const auto n = static_cast<std::int64_t>(sample.size());
  if (n == 1) return {{centre, std::nullopt, n}};
  const double half =
      student_t_quantile(0.5 + confidence / 2, static_cast<double>(n - 1)) * standard_error(sample);
  return {{centre, Interval{centre - half, centre + half}, n}};
}

double mean_without_extremes(std::span<const double> sample) {
  if (sample.size() < 5) return mean(sample);
  std::vector<double> values(sample.begin(), sample.end());
  std::ranges::sort(values);
  return mean(std::span(values).subspan(1, values.size() - 2));
}

report::Tost equivalence(std::span<const double> differences, double margin) {
  constexpr double k_alpha = 0.05;
  require(margin > 0, "margin {}", margin);
  report::Tost result{.margin = margin};
  const double centre = mean(differences);
  if (differences.size() == 1) return result;
  const double error = standard_error(differences);
  const double dof = static_cast<double>(differences.size()) - 1;
  result.p = std::max(p_above(centre + margin, error, dof), p_above(margin - centre, error, dof));
  result.equivalent = result.p < k_alpha;
  return result;
}

report::McNemar mcnemar(std::int64_t b, std::int64_t c) {
  require(b >= 0 && c >= 0, "counts {} and {}", b, c);
  return {b, c, std::min(1.0, 2 * binomial_half_cdf(std::min(b, c), b + c))};
}

report::McNemar mcnemar(std::span<const std::uint8_t> baseline_right,
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

}  // namespace halfstep
