#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <ostream>

#include "core/error.h"
#include "study/comparisons.h"

namespace halfstep {
namespace {

/// The accuracy that the header promises.
constexpr double k_accuracy = 1e-10;

void check_accurate(double got, double want) {
  CAPTURE(got);
  CAPTURE(want);
  CHECK(std::abs(got - want) <= k_accuracy * std::abs(want));
}

TEST_CASE("distributions: incomplete beta") {
  struct Case {
    double a, b, x, want;
  };
  // mpmath, 40 digits: betainc(a, b, 0, x, regularized=True)
  constexpr std::array cases{
      Case{0.5, 0.5, 0.1, 0.20483276469913346},
      Case{2, 3, 0.4, 0.5248},
      Case{10, 0.5, 0.99, 0.65792817515678433},
      Case{1e-2, 5, 0.3, 0.99914422348269665},
      Case{30, 40, 0.5, 0.88579988732335151},
      Case{5000, 0.5, 0.9995, 0.025332672657805693},
      Case{500000, 0.5, 0.999998, 0.1572991032787867},
      Case{2000, 3000, 0.41, 0.92526212620830418},
      Case{1, 1, 0.25, 0.25},
      Case{3, 4, 0, 0},
      Case{3, 4, 1, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.a);
    CAPTURE(c.b);
    CAPTURE(c.x);
    check_accurate(incomplete_beta(c.a, c.b, c.x), c.want);
    // I_x(a, b) = 1 - I_(1-x)(b, a), up to the rounding of 1 - x.
    CHECK(std::abs(1 - incomplete_beta(c.b, c.a, 1 - c.x) - c.want) <= k_accuracy);
  }
  CHECK_THROWS_AS(incomplete_beta(0, 1, 0.5), InternalError);
  CHECK_THROWS_AS(incomplete_beta(1, 1, 1.5), InternalError);
}

TEST_CASE("distributions: Student's t") {
  struct Case {
    double t, dof, p;
  };
  // mpmath: tail = betainc(v / 2, 1 / 2, 0, v / (v + t * t), regularized=True) / 2
  constexpr std::array cases{
      Case{1, 1, 0.75},
      Case{-2.5, 4, 0.033383272405994073},
      Case{2.776, 4, 0.97498861084001179},
      Case{0.1, 9, 0.5387317760216594},
      Case{-10, 30, 2.2876257041148066e-11},
      Case{-40, 2, 0.00031220733609237032},
      Case{1.96, 10000, 0.97498823988408348},
      Case{-3, 2.5, 0.036288047774515922},
      Case{-6, 1e6, 9.8692490617721733e-10},
      Case{0, 7, 0.5},
  };
  for (const Case& c : cases) {
    CAPTURE(c.t);
    CAPTURE(c.dof);
    check_accurate(student_t_cdf(c.t, c.dof), c.p);
    CHECK(std::abs(student_t_cdf(-c.t, c.dof) - (1 - c.p)) <= k_accuracy);
  }
  CHECK(student_t_cdf(INFINITY, 3) == 1);
  CHECK(student_t_cdf(-INFINITY, 3) == 0);
  CHECK_THROWS_AS(student_t_cdf(1, 0), InternalError);

  // mpmath: the root of the above, also found in every printed t table
  constexpr std::array quantiles{
      Case{12.706204736174705, 1, 0.975},
      Case{4.3026527297494639, 2, 0.975},
      Case{2.7764451051977944, 4, 0.975},
      Case{1.8331129326562372, 9, 0.95},
      Case{2.7563859036706055, 29, 0.995},
      Case{1.9623390808264085, 1000, 0.975},
      Case{22.203742273204183, 3, 0.9999},
      Case{0.26718086570414513, 5, 0.6},
  };
  for (const Case& c : quantiles) {
    CAPTURE(c.dof);
    CAPTURE(c.p);
    check_accurate(student_t_quantile(c.p, c.dof), c.t);
    check_accurate(student_t_quantile(1 - c.p, c.dof), -c.t);
  }
}

TEST_CASE("distributions: binomial of one half") {
  struct Case {
    std::int64_t k, n;
    double want;
  };
  // scipy: stats.binom.cdf(k, n, .5)
  constexpr std::array cases{
      Case{0, 1, 0.5},
      Case{3, 10, 0.171875},
      Case{45, 100, 0.18410080866334808},
      Case{4900, 10000, 0.023292763852473225},
      Case{-1, 5, 0},
      Case{5, 5, 1},
      Case{0, 0, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.k);
    CAPTURE(c.n);
    check_accurate(binomial_half_cdf(c.k, c.n), c.want);
  }
  // Against the sum itself, which is exact while 2^n fits a double.
  for (std::int64_t n : {1, 2, 7, 30, 50}) {
    double sum = 0;
    double choose = 1;
    for (std::int64_t k = 0; k < n; ++k) {
      sum += choose;
      check_accurate(binomial_half_cdf(k, n), std::ldexp(sum, -static_cast<int>(n)));
      choose = choose * static_cast<double>(n - k) / static_cast<double>(k + 1);
    }
  }
}

}  // namespace
}  // namespace halfstep
