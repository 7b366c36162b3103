#pragma once
// Statistical tests of the difference between two ways of training, and the distributions that they
// need, accurate to 1e-10 relative or better.

#include <cstdint>
#include <span>

#include "report/compare_report.h"

namespace halfstep {

/// The mean and its Student t interval, mean +- t s / sqrt(n); no interval for a single value.
/// Errors: InternalError for an empty sample.
report::MeanEstimate t_interval(std::span<const double> sample, double confidence = 0.95);

/// The mean without the smallest and the largest value, from five values up; for fewer, of all
/// values.
double mean_without_extremes(std::span<const double> sample);

/// Two one-sided t tests: is the mean of the differences within +-margin? p is the larger of the
/// two one-sided p values. Equivalent when p < 0.05, that is when the 90 % interval of the mean is
/// within the margin. One difference gives p = 1. Errors: InternalError unless margin > 0.
/// Source: Schuirmann 1987.
report::Tost equivalence(std::span<const double> differences, double margin);

/// McNemar's exact test of `b` examples that only the baseline classifies correctly and `c` that
/// only the variant does: p is two-sided, from Binomial(b + c, 1/2).
report::McNemar mcnemar(std::int64_t b, std::int64_t c);

/// Arguments: 1 for a correct answer, 0 for a wrong one, over the same examples. Errors:
/// InternalError for unequal sizes.
report::McNemar mcnemar(std::span<const std::uint8_t> baseline_right,
                        std::span<const std::uint8_t> variant_right);

/// The regularised incomplete beta function.
/// I_x(a, b) = integral_0^x t^(a-1) (1-t)^(b-1) dt / B(a, b)
/// Errors: InternalError unless a, b > 0 and 0 <= x <= 1.
/// Source: its continued fraction, DLMF 8.17.22, by the method of Lentz.
double incomplete_beta(double a, double b, double x);

/// P(T < t) of Student's t with `dof` degrees of freedom, which need not be whole.
/// Errors: InternalError unless dof > 0.
double student_t_cdf(double t, double dof);

/// The t with student_t_cdf(t, dof) = p. Errors: InternalError unless 0 < p < 1.
double student_t_quantile(double p, double dof);

/// P(X <= k) of a binomial with n trials of one half each.
double binomial_half_cdf(std::int64_t k, std::int64_t n);

}  // namespace halfstep
