#pragma once
// The distributions needed for comparisons of runs. Accurate to 1e-10 relative, or better.

#include <cstdint>

namespace halfstep {

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
