#include "nn/initializer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "config/load.h"
#include "nn/regularizer.h"
#include "plan/state.h"

namespace halfstep::nn {
namespace {

using Kind = graph::Initializer::Kind;

/// A struct with an initializer and a regularizer, as layers have them.
struct Holder {
  InitializerSpec initializer{"glorot_uniform"};
  std::optional<RegularizerSpec> regularizer;

  void fields(config::Fields& f) {
    initializer_field(f, "initializer", initializer, "an initializer");
    regularizer_field(f, "regularizer", regularizer, "a regularizer");
  }
};

Holder read(std::string_view text, Diagnostics& diagnostics) {
  Holder holder;
  config::read(config::load_value(text, "test", diagnostics), holder, diagnostics);
  check(holder.initializer, diagnostics);
  return holder;
}

graph::Initializer resolved(std::string_view initializer, const Shape& shape) {
  Diagnostics diagnostics;
  const Holder holder = read(fmt::format("{{initializer: {}}}", initializer), diagnostics);
  diagnostics.throw_if_any();
  return resolve(holder.initializer, shape);
}

TEST_CASE("initializer: fans are Keras's") {
  struct Case {
    Shape shape;
    std::int64_t in, out;
  };
  const Case cases[] = {
      {{}, 1, 1},
      {{5}, 5, 5},
      {{4, 6}, 4, 6},
      {{3, 3, 2, 8}, 18, 72},
      {{5, 1, 7, 3}, 35, 15},
  };
  for (const Case& c : cases) {
    CAPTURE(to_string(c.shape));
    CHECK(fans(c.shape).in == c.in);
    CHECK(fans(c.shape).out == c.out);
  }
}

TEST_CASE("initializer: each name gives the distribution of its formula") {
  struct Case {
    std::string_view text;
    Kind kind;
    double a, b;
  };
  // Fans of [3, 3, 2, 8]: 18 and 72. The limit of a uniform with variance v is sqrt(3 v); a normal
  // truncated at two standard deviations has 0.8796 of its own.
  const double cut = 0.87962566103423978;
  const Case cases[] = {
      {"zeros", Kind::constant, 0, 0},
      {"ones", Kind::constant, 1, 0},
      {"{type: constant, value: -2.5}", Kind::constant, -2.5, 0},
      {"glorot_uniform", Kind::uniform, -std::sqrt(6.0 / 90), std::sqrt(6.0 / 90)},
      {"glorot_normal", Kind::truncated_normal, 0, std::sqrt(2.0 / 90) / cut},
      {"he_uniform", Kind::uniform, -std::sqrt(6.0 / 18), std::sqrt(6.0 / 18)},
      {"he_normal", Kind::truncated_normal, 0, std::sqrt(2.0 / 18) / cut},
      {"lecun_uniform", Kind::uniform, -std::sqrt(3.0 / 18), std::sqrt(3.0 / 18)},
      {"lecun_normal", Kind::truncated_normal, 0, std::sqrt(1.0 / 18) / cut},
      {"random_uniform", Kind::uniform, -0.05, 0.05},
      {"{type: random_uniform, minval: 0, maxval: 2}", Kind::uniform, 0, 2},
      {"random_normal", Kind::normal, 0, 0.05},
      {"{type: truncated_normal, mean: 1, stddev: 0.5}", Kind::truncated_normal, 1, 0.5},
      {"orthogonal", Kind::orthogonal, 1, 0},
      {"{type: orthogonal, gain: 2}", Kind::orthogonal, 2, 0},
      {"variance_scaling", Kind::truncated_normal, 0, std::sqrt(1.0 / 18) / cut},
      {"{type: variance_scaling, scale: 3, mode: fan_out, distribution: untruncated_normal}",
       Kind::normal,
       0,
       std::sqrt(3.0 / 72)},
      {"{type: variance_scaling, mode: fan_avg, distribution: uniform}",
       Kind::uniform,
       -std::sqrt(3.0 / 45),
       std::sqrt(3.0 / 45)},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const graph::Initializer got = resolved(c.text, {3, 3, 2, 8});
    CHECK(got.kind == c.kind);
    CHECK(got.a == doctest::Approx(c.a).epsilon(1e-12));
    CHECK(got.b == doctest::Approx(c.b).epsilon(1e-12));
    CHECK(got.seed == 0);
  }
  CHECK(resolved("{type: he_normal, seed: 11}", {4, 4}).seed == 11);
}

TEST_CASE("initializer: drawn values have the mean, variance and bounds of Keras's formulas") {
  struct Case {
    std::string_view name;
    double variance;
    double bound;  // in standard deviations of the formula
  };
  // For a kernel [3, 3, 32, 64] with fans 288 and 576.
  const double uniform = std::sqrt(3.0);
  const double normal = 2 / 0.87962566103423978;
  const Case cases[] = {
      {"glorot_uniform", 2.0 / 864, uniform},
      {"glorot_normal", 2.0 / 864, normal},
      {"he_uniform", 2.0 / 288, uniform},
      {"he_normal", 2.0 / 288, normal},
      {"lecun_uniform", 1.0 / 288, uniform},
      {"lecun_normal", 1.0 / 288, normal},
      {"random_uniform", 0.05 * 0.05 / 3, uniform},
      {"random_normal", 0.05 * 0.05, 6},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Tensor kernel(DType::float32, {3, 3, 32, 64});
    plan::initialize(kernel, resolved(c.name, kernel.shape()), 1, "layer/kernel");
    double sum = 0, squares = 0, largest = 0;
    for (const float v : kernel.span<float>()) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
      largest = std::max(largest, std::abs(static_cast<double>(v)));
    }
    // Five standard deviations of the mean and, at most (of a normal), of the variance.
    const auto n = static_cast<double>(kernel.elements());
    CHECK(std::abs(sum / n) < 5 * std::sqrt(c.variance / n));
    CHECK(std::abs(squares / n - c.variance) < 5 * c.variance * std::sqrt(2 / n));
    CHECK(largest <= c.bound * std::sqrt(c.variance) * (1 + epsilon(DType::float32)));
  }
}

TEST_CASE("initializer: unknown names, foreign fields and values out of range are reported") {
  struct Case {
    std::string_view text;
    std::string_view message;
  };
  constexpr Case k_cases[] = {
      {"{initializer: glorot}", "unknown type 'glorot'"},
      {"{initializer: {type: he_normal, stddev: 1}}", "unknown key 'stddev'"},
      {"{initializer: {type: zeros, seed: 1}}", "unknown key 'seed'"},
      {"{initializer: {type: random_normal, stddev: -1}}", "must be at least 0, got -1"},
      {"{initializer: {type: random_uniform, minval: 1}}", "minval 1 is above maxval 0.05"},
      {"{initializer: {type: variance_scaling, scale: 0}}", "must be above 0, got 0"},
      {"{regularizer: l3}", "must be one of l1, l2, l1_l2, got 'l3'"},
      {"{regularizer: {l2: -1}}", "must be at least 0, got -1"},
      {"{regularizer: {type: l1, l2: 1}}", "unknown key 'l2'"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    Diagnostics diagnostics;
    read(c.text, diagnostics);
    REQUIRE(diagnostics.problems().size() == 1);
    const std::string& message = diagnostics.problems()[0].message;
    CAPTURE(message);
    CHECK(message.starts_with(c.message));
  }
}

TEST_CASE("regularizer: a bare word has Keras's factor, a map what it gives") {
  struct Case {
    std::string_view text;
    double l1, l2;
  };
  constexpr Case k_cases[] = {
      {"l1", 0.01, 0},
      {"l2", 0, 0.01},
      {"l1_l2", 0.01, 0.01},
      {"{l1: 0.5}", 0.5, 0},
      {"{l1: 0.5, l2: 0.25}", 0.5, 0.25},
      {"{type: l2, l2: 0.25}", 0, 0.25},
      {"{type: l1_l2, l2: 0.25}", 0, 0.25},
      {"{}", 0, 0},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    Diagnostics diagnostics;
    const Holder holder = read(fmt::format("{{regularizer: {}}}", c.text), diagnostics);
    diagnostics.throw_if_any();
    REQUIRE(holder.regularizer.has_value());
    CHECK(holder.regularizer->l1_factor() == c.l1);
    CHECK(holder.regularizer->l2_factor() == c.l2);
  }
  Diagnostics diagnostics;
  CHECK_FALSE(read("{regularizer: null}", diagnostics).regularizer.has_value());
  CHECK(diagnostics.empty());
}

}  // namespace
}  // namespace halfstep::nn
