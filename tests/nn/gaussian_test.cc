// The distribution of gaussian_noise and gaussian_dropout, and their gradients.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <ostream>

#include "nn/evaluate_model.h"
#include "passes/differentiate.h"

namespace halfstep::nn::gaussian {
namespace {

constexpr std::int64_t k_batch = 4;
constexpr std::size_t k_width = 20'000;

test::BuiltModel build(std::string_view layer, std::string_view policy, bool training = true) {
  const test::ModelText text =
      test::good_model(fmt::format("{{input: [{}], layers: [{{{}}}]}}", k_width, layer),
                       fmt::format("{{policy: {}}}", policy));
  return test::build_model(text.model, k_batch, training);
}

/// The output on inputs of `x` everywhere.
std::vector<double> output(std::string_view layer,
                           float x,
                           std::string_view policy = "float32",
                           std::int64_t ordinal = 0) {
  const auto fill = [=](std::int64_t) { return x; };
  return test::elements(test::evaluate_model(build(layer, policy), fill, ordinal).outputs.at(0));
}

constexpr std::string_view k_noise = "name: a, type: gaussian_noise, stddev: 0.5";

/// The noise in standard deviations.
std::vector<double> standard_noise(std::string_view layer = k_noise, std::int64_t ordinal = 0) {
  std::vector<double> noise = output(layer, 0, "float32", ordinal);
  for (double& z : noise) z /= 0.5;
  return noise;
}

double mean_of_power(const std::vector<double>& x, int power) {
  double sum = 0;
  for (const double each : x) sum += std::pow(each, power);
  return sum / static_cast<double>(x.size());
}

/// The mean of x[i] y[i + lag].
double correlation(const std::vector<double>& x, const std::vector<double>& y, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < x.size(); ++i) sum += x[i] * y[i + lag];
  return sum / static_cast<double>(x.size() - lag);
}

/// The largest distance of the distribution function of `x` from that of a standard normal.
double kolmogorov_smirnov(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double normal = 0.5 * std::erfc(-x[i] / std::numbers::sqrt2);
    const auto before = static_cast<double>(i);
    most = std::max({most, normal - before / n, (before + 1) / n - normal});
  }
  return most;
}

}  // namespace

TEST_CASE("gaussian_noise: the noise has the distribution of a normal") {
  const std::vector<double> z = standard_noise();
  const auto n = static_cast<double>(z.size());
  // Five standard deviations of the means of z^k, whose variances are those of a normal.
  CHECK(std::abs(mean_of_power(z, 1)) < 5 * std::sqrt(1 / n));
  CHECK(std::abs(mean_of_power(z, 2) - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::abs(mean_of_power(z, 3)) < 5 * std::sqrt(15 / n));
  CHECK(std::abs(mean_of_power(z, 4) - 3) < 5 * std::sqrt(96 / n));
  // Of normal numbers, one draw in 10^5 is further away.
  CHECK(kolmogorov_smirnov(z) < 2.5 / std::sqrt(n));
  // The test can tell a normal from a uniform distribution of the same moments up to the third.
  std::vector<double> uniform(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    uniform[i] = std::sqrt(12) * ((static_cast<double>(i) + 0.5) / n - 0.5);
  }
  CHECK(kolmogorov_smirnov(uniform) > 2.5 / std::sqrt(n));
}

TEST_CASE("gaussian_noise: elements, samples, batches, layers and seeds are not correlated") {
  const std::vector<double> z = standard_noise();
  const double bound = 5 / std::sqrt(static_cast<double>(z.size()));
  for (const std::size_t lag : {1UL, 2UL, 3UL, 4UL, 5UL, 8UL, 64UL, k_width}) {
    CAPTURE(lag);
    CHECK(std::abs(correlation(z, z, lag)) < 1.2 * bound);
  }
  CHECK(standard_noise() == z);
  for (const std::vector<double>& other :
       {standard_noise(k_noise, 1),
        standard_noise("name: b, type: gaussian_noise, stddev: 0.5"),
        standard_noise("name: a, type: gaussian_noise, stddev: 0.5, seed: 1")}) {
    CHECK(other != z);
    CHECK(std::abs(correlation(z, other, 0)) < bound);
  }
}

TEST_CASE("gaussian_noise: every policy has the same noise, rounded to its compute dtype") {
  const std::vector<double> exact = output(k_noise, 0);
  for (const auto& [policy, epsilon] : {std::pair("mixed_float16", 0x1p-10),
                                        std::pair("mixed_bfloat16", 0x1p-7),
                                        std::pair("bfloat16", 0x1p-7)}) {
    CAPTURE(policy);
    const std::vector<double> rounded = output(k_noise, 0, policy);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      // The normal number is rounded, and so is its multiple; float16 has subnormals.
      wrong += std::abs(rounded[i] - exact[i]) > epsilon * std::abs(exact[i]) + 0x1p-24 ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(rounded != exact);
  }
}

TEST_CASE("gaussian_dropout: factors have mean 1 and the variance of a dropout of the rate") {
  for (const double rate : {0.125, 0.5}) {
    CAPTURE(rate);
    const std::string layer = fmt::format("type: gaussian_dropout, rate: {}", rate);
    std::vector<double> z = output(layer, 1);
    for (double& factor : z) factor = (factor - 1) / std::sqrt(rate / (1 - rate));
    const auto n = static_cast<double>(z.size());
    CHECK(std::abs(mean_of_power(z, 1)) < 5 * std::sqrt(1 / n));
    CHECK(std::abs(mean_of_power(z, 2) - 1) < 5 * std::sqrt(2 / n));
    CHECK(kolmogorov_smirnov(z) < 2.5 / std::sqrt(n));
    // A factor of -4 is exact.
    const std::vector<double> one = output(layer, 1), other = output(layer, -4);
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(other[i] == -4 * one[i]);
  }
}

TEST_CASE("gaussian layers: the gradient of noise is 1 and that of a factor the factor") {
  for (const std::string_view layer :
       {"type: gaussian_noise, stddev: 0.5", "type: gaussian_dropout, rate: 0.25"}) {
    CAPTURE(layer);
    test::BuiltModel built = build(layer, "float32");
    graph::Builder b(built.graph, graph::op_table());
    const graph::Value loss = graph::ops::reduce(b, "Sum", built.forward.outputs[0]);
    built.forward.outputs.push_back(passes::differentiate(b, loss, built.inputs).at(0));
    const auto [outputs, assigned] = test::evaluate_model(built, [](auto) { return 1.0F; });
    const std::vector<double> y = test::elements(outputs.at(0)), dx = test::elements(outputs.at(1));
    const bool factor = layer.find("dropout") != std::string_view::npos;
    for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(dx[i] == (factor ? y[i] : 1));
  }
}

TEST_CASE("gaussian layers: outside of training, and without noise, the output is the input") {
  for (const std::string_view layer :
       {"type: gaussian_noise, stddev: 0.5", "type: gaussian_dropout, rate: 0.25"}) {
    CHECK(build(layer, "float32", false).graph.size() == 2);  // input and ordinal
  }
  CHECK(output("type: gaussian_noise, stddev: 0", 3) == std::vector(k_batch * k_width, 3.0));
  CHECK(output("type: gaussian_dropout, rate: 0", 3) == std::vector(k_batch * k_width, 3.0));
  CHECK(test::read_model_text("{input: [4], layers: [{type: gaussian_dropout, rate: 1}]}")
            .problems.front()
            .find("rate must be below 1") != std::string::npos);
}

}  // namespace halfstep::nn::gaussian
