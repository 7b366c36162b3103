#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <string_view>

#include "core/parallel.h"
#include "fixture.h"

namespace halfstep::testing {
namespace {

using graph::Attrs;
using graph::Value;

constexpr double k_epsilon = 0.001;

struct NormCase {
  std::string_view name;
  Shape x;
  double low = -1, high = 1;
};

const NormCase k_norm_cases[] = {
    {"one number", {1, 1, 1, 1}},
    {"one row", {1, 1, 1, 5}},
    {"two rows", {2, 1, 1, 3}},
    {"images", {3, 4, 5, 7}},
    {"more channels than fit side by side", {2, 3, 1, 37}},
    {"far from zero", {4, 4, 4, 2}, 1000, 1002},
    {"squares above the largest float16", {2, 4, 4, 3}, -600, 600},
};

struct Types {
  DType x, statistics;
};
constexpr Types k_types[] = {{DType::float32, DType::float32},
                             {DType::float16, DType::float32},
                             {DType::bfloat16, DType::float32},
                             {DType::float64, DType::float64}};

/// The elements of channel c.
std::vector<double> channel(const std::vector<double>& all, std::int64_t channels, std::int64_t c) {
  std::vector<double> picked;
  for (std::size_t i = static_cast<std::size_t>(c); i < all.size();
       i += static_cast<std::size_t>(channels)) {
    picked.push_back(all[i]);
  }
  return picked;
}

/// Mean and biased variance, by sums of distances from the first element.
struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<double>& x) {
  long double sum = 0, squares = 0;
  for (double v : x) {
    sum += v - x[0];
    squares += (static_cast<long double>(v) - x[0]) * (static_cast<long double>(v) - x[0]);
  }
  const auto n = static_cast<long double>(x.size());
  return {static_cast<double>(x[0] + sum / n), static_cast<double>((squares - sum * sum / n) / n)};
}

void check_close(DType dtype, double got, double want, double magnitude) {
  const double allowed = rounding(dtype, want) + 4096 * epsilon(DType::float64) * magnitude;
  CAPTURE(want);
  CHECK(std::abs(got - want) <= allowed);
}

TEST_CASE("batch norm: training normalizes by the batch and returns its statistics") {
  for (const Types& types : k_types) {
    CAPTURE(name(types.x));
    for (const NormCase& c : k_norm_cases) {
      CAPTURE(c.name);
      const std::int64_t channels = c.x.back();
      for (const double factor : {1.0, 0.25}) {
        Fixture fixture;
        const Shape vector{channels};
        const Tensor x = random_tensor(types.x, c.x, 1, c.low, c.high);
        const Tensor scale = random_tensor(types.statistics, vector, 2, 0.5, 2);
        const Tensor offset = random_tensor(types.statistics, vector, 3);
        const Tensor mean = random_tensor(types.statistics, vector, 4);
        const Tensor variance = random_tensor(types.statistics, vector, 5, 0, 1);
        // With factor 1 the old statistics are not read: they may be empty.
        const Shape old = factor == 1 ? Shape{0} : vector;
        const Value vmean =
            fixture.input(factor == 1 ? Tensor(types.statistics, old) : mean.clone());
        const Value vvariance =
            fixture.input(factor == 1 ? Tensor(types.statistics, old) : variance.clone());
        const int node =
            fixture.b().add_node("FusedBatchNormV3",
                                 {fixture.input(x.clone()),
                                  fixture.input(scale.clone()),
                                  fixture.input(offset.clone()),
                                  vmean,
                                  vvariance},
                                 {{"epsilon", k_epsilon}, {"exponential_avg_factor", factor}});
        fixture.run();
        const auto out = [&](int port) { return values(fixture.result({node, port})); };
        for (std::int64_t ch = 0; ch < channels; ++ch) {
          const auto at = static_cast<std::size_t>(ch);
          const std::vector<double> xs = channel(values(x), channels, ch);
          const std::vector<double> ys = channel(out(0), channels, ch);
          const Moments m = moments(xs);
          const double n = static_cast<double>(xs.size());
          const double unbiased = n > 1 ? m.variance * n / (n - 1) : 0;
          const double spread = std::max(std::abs(c.low), std::abs(c.high));
          const double old_mean = values(mean)[at], old_variance = values(variance)[at];
          check_close(
              types.statistics, out(1)[at], factor * m.mean + (1 - factor) * old_mean, spread);
          check_close(types.statistics,
                      out(2)[at],
                      factor * unbiased + (1 - factor) * old_variance,
                      spread * spread);
          check_close(types.statistics, out(3)[at], m.mean, spread);
          check_close(types.statistics, out(4)[at], m.variance, spread * spread);
          const double root = std::sqrt(m.variance + k_epsilon);
          for (std::size_t i = 0; i < xs.size(); ++i) {
            const double want = (xs[i] - m.mean) / root * values(scale)[at] + values(offset)[at];
            check_close(types.x, ys[i], want, spread / root);
          }
        }
      }
    }
  }
}

TEST_CASE("batch norm: inference normalizes by the given statistics") {
  for (const Types& types : k_types) {
    CAPTURE(name(types.x));
    Fixture fixture;
    const Shape shape{2, 3, 2, 3};
    const Tensor x = random_tensor(types.x, shape, 1);
    std::vector<Tensor> s;
    for (unsigned i = 0; i < 4; ++i) {
      s.push_back(random_tensor(types.statistics, {3}, 10 + i, 0.25, 2));
    }
    const int node = fixture.b().add_node("FusedBatchNormV3",
                                          {fixture.input(x.clone()),
                                           fixture.input(s[0].clone()),
                                           fixture.input(s[1].clone()),
                                           fixture.input(s[2].clone()),
                                           fixture.input(s[3].clone())},
                                          {{"epsilon", k_epsilon}, {"is_training", false}});
    const std::vector<double> y = values(fixture.evaluate({node, 0}));
    CHECK(values(fixture.result({node, 1})) == values(s[2]));
    CHECK(values(fixture.result({node, 2})) == values(s[3]));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t c = i % 3;
      const double want = (values(x)[i] - values(s[2])[c]) /
                              std::sqrt(values(s[3])[c] + k_epsilon) * values(s[0])[c] +
                          values(s[1])[c];
      check_close(types.x, y[i], want, 8);
    }
  }
}

TEST_CASE("batch norm: the gradient is the direct formula in every dtype") {
  for (const Types& types : k_types) {
    CAPTURE(name(types.x));
    for (const NormCase& c : k_norm_cases) {
      for (const bool training : {true, false}) {
        CAPTURE(c.name);
        CAPTURE(training);
        Fixture fixture;
        const std::int64_t channels = c.x.back();
        const Tensor x = random_tensor(types.x, c.x, 1, c.low, c.high);
        const Tensor dy = random_tensor(types.x, c.x, 2);
        const Tensor scale = random_tensor(DType::float32, {channels}, 3, 0.5, 2);
        const Tensor mean = random_tensor(types.statistics, {channels}, 4, c.low, c.high);
        const double square = std::max(1.0, (c.high - c.low) * (c.high - c.low) / 4);
        const Tensor variance =
            random_tensor(types.statistics, {channels}, 5, 0.25 * square, 2 * square);
        const Value statistics[] = {fixture.input(mean.clone()), fixture.input(variance.clone())};
        const int node = fixture.b().add_node("FusedBatchNormGradV3",
                                              {fixture.input(dy.clone()),
                                               fixture.input(x.clone()),
                                               fixture.input(scale.clone()),
                                               statistics[0],
                                               statistics[1],
                                               fixture.input(Tensor(types.statistics, {}))},
                                              {{"epsilon", k_epsilon}, {"is_training", training}});
        fixture.run();
        CHECK(fixture.result({node, 3}).shape() == Shape{0});
        for (std::int64_t ch = 0; ch < channels; ++ch) {
          const auto at = static_cast<std::size_t>(ch);
          const std::vector<double> xs = channel(values(x), channels, ch);
          const std::vector<double> ds = channel(values(dy), channels, ch);
          const std::vector<double> got = channel(values(fixture.result({node, 0})), channels, ch);
          const double n = static_cast<double>(xs.size());
          const double root = std::sqrt(values(variance)[at] + k_epsilon);
          double sum = 0, product = 0, magnitude = 0;
          for (std::size_t i = 0; i < xs.size(); ++i) {
            const double xhat = (xs[i] - values(mean)[at]) / root;
            sum += ds[i];
            product += ds[i] * xhat;
            magnitude = std::max(magnitude, std::abs(xhat));
          }
          check_close(
              types.statistics, values(fixture.result({node, 1}))[at], product, n * magnitude);
          check_close(types.statistics, values(fixture.result({node, 2}))[at], sum, n);
          for (std::size_t i = 0; i < xs.size(); ++i) {
            const double xhat = (xs[i] - values(mean)[at]) / root;
            const double through = training ? (sum + xhat * product) / n : 0;
            const double want = values(scale)[at] / root * (ds[i] - through);
            check_close(types.x, got[i], want, 8 * (1 + magnitude * magnitude));
          }
        }
      }
    }
  }
}

TEST_CASE("batch norm: the gradient rule agrees with finite differences") {
  for (const bool training : {true, false}) {
    CAPTURE(training);
    Fixture fixture;
    const Shape shape{3, 2, 2, 2};
    // Numbers of float32, since TensorFlow's gradient takes the scale in that dtype.
    const Value scale = fixture.input(tensor(DType::float64, {2}, {0.75, 1.5}));
    const int node =
        fixture.b().add_node("FusedBatchNormV3",
                             {fixture.input(random_tensor(DType::float64, shape, 1)),
                              scale,
                              fixture.input(random_tensor(DType::float64, {2}, 2)),
                              fixture.input(random_tensor(DType::float64, {2}, 3)),
                              fixture.input(random_tensor(DType::float64, {2}, 4, 0.5, 1))},
                             {{"epsilon", k_epsilon}, {"is_training", training}});
    for (double error : gradient_errors(fixture, node, {0, 1, 2})) {
      CHECK(error <= 16 * difference_tolerance());  // third derivatives grow as variance^(-3/2)
    }
  }
}

TEST_CASE("batch norm: a NaN or infinity spoils its channel, and no other") {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    Fixture fixture;
    Tensor x = random_tensor(DType::float16, {2, 2, 2, 3}, 1);
    x.as<float16>()[1] = float16(static_cast<float>(bad));
    const Value ones = fixture.input(tensor(DType::float32, {3}, {1, 1, 1}));
    const int node = fixture.b().add_node("FusedBatchNormV3",
                                          {fixture.input(x.clone()), ones, ones, ones, ones},
                                          {{"epsilon", k_epsilon}});
    const std::vector<double> y = values(fixture.evaluate({node, 0}));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isfinite(y[i]) == (i % 3 != 1));
    CHECK(std::isnan(values(fixture.result({node, 2}))[1]));
  }
}

TEST_CASE("batch norm: every number of threads gives the same bits") {
  const int before = thread_count();
  std::vector<std::vector<double>> first;
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    Fixture fixture;
    const Value x = fixture.input(random_tensor(DType::float32, {8, 17, 19, 67}, 1));
    const Value s = fixture.input(random_tensor(DType::float32, {67}, 2, 0.5, 1));
    const int node = fixture.b().add_node("FusedBatchNormV3", {x, s, s, s, s});
    const int grad =
        fixture.b().add_node("FusedBatchNormGradV3", {x, x, s, {node, 3}, {node, 4}, {node, 5}});
    fixture.run();
    std::vector<std::vector<double>> got;
    for (int port : {0, 1, 2}) got.push_back(values(fixture.result({node, port})));
    for (int port : {0, 1, 2}) got.push_back(values(fixture.result({grad, port})));
    if (first.empty()) first = got;
    CHECK(got == first);
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace halfstep::testing
