#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "study/comparisons.h"

namespace halfstep {
namespace {

/// log Gamma(x) - ((x - 1/2) log x - x + log(2 pi)/2) for x >= 10: Stirling's series, DLMF 5.11.1.
double stirling_rest(double x) {
  const double q = 1 / (x * x);
  const double terms =
      1.0 / 12 +
      q * (-1.0 / 360 +
           q * (1.0 / 1260 + q * (-1.0 / 1680 + q * (1.0 / 1188 - q * (691.0 / 360360)))));
  return terms / x;
}

/// log B(a, b), without the cancellation of three log Gammas when an argument is large.
double log_beta(double a, double b) {
  if (a < b) std::swap(a, b);
  if (a < 10) return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  return std::lgamma(b) + stirling_rest(a) - stirling_rest(a + b) - (a - 0.5) * std::log1p(b / a) -
         b * std::log(a + b) + b;
}

/// The continued fraction of I_x(a, b); converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double k_tiny = std::numeric_limits<double>::min() * 0x1p52;
  constexpr double k_enough = 0x1p-52;
  const auto away_from_zero = [](double v) { return std::abs(v) < k_tiny ? k_tiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < 1'000'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double step = d * c;
    fraction *= step;
    if (std::abs(step - 1) <= k_enough) break;
  }
  return fraction;
}

/// I_x(a, b) of x = 1 - y; both are given to keep full precision at either end.
double incomplete_beta_of(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double log_x = x < 0.5 ? std::log(x) : std::log1p(-y);
  const double log_y = y < 0.5 ? std::log(y) : std::log1p(-x);
  const double front = std::exp(a * log_x + b * log_y - log_beta(a, b));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

/// P(T > |t|).
double student_t_tail(double t, double dof) {
  if (std::isinf(t)) return 0;
  const double square = t * t;
  return 0.5 * incomplete_beta_of(dof / 2, 0.5, dof / (dof + square), square / (dof + square));
}

/// The t >= 0 with P(T > t) = p; p <= 1/2.
double tail_quantile(double p, double dof) {
  double low = 0;
  double high = 1;
  while (student_t_tail(high, dof) > p && high < 1e300) {
    low = high;
    high *= 2;
  }
  // Bisection: a hundred steps are cheap here, and it always converges.
  for (int i = 0; i < 200; ++i) {
    const double middle = std::midpoint(low, high);
    if (middle <= low || middle >= high) break;
    (student_t_tail(middle, dof) > p ? low : high) = middle;
  }
  return std::midpoint(low, high);
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  require(a > 0 && b > 0 && x >= 0 && x <= 1, "incomplete beta of {}, {}, {}", a, b, x);
  return incomplete_beta_of(a, b, x, 1 - x);
}

double student_t_cdf(double t, double dof) {
  require(dof > 0, "{} degrees of freedom", dof);
  const double tail = student_t_tail(t, dof);
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double p, double dof) {
  require(dof > 0, "{} degrees of freedom", dof);
  require(p > 0 && p < 1, "quantile of {}", p);
  return p < 0.5 ? -tail_quantile(p, dof) : tail_quantile(1 - p, dof);
}

double binomial_half_cdf(std::int64_t k, std::int64_t n) {
  require(n >= 0, "{} trials", n);
  if (k < 0) return 0;
  if (k >= n) return 1;
  // The sum of the first terms is an incomplete beta function, DLMF 8.17.5.
  return incomplete_beta(static_cast<double>(n - k), static_cast<double>(k + 1), 0.5);
}

}  // namespace halfstep
