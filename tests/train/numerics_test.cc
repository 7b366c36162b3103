#include "train/numerics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <string_view>

#include "train/fixture.h"

namespace halfstep::train {
namespace {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

Tensor tensor(DType dtype, const std::vector<double>& values) {
  Tensor wide(DType::float64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), wide.as<double>());
  Tensor result(dtype, wide.shape());
  convert(wide.view(), result.view());
  return result;
}

TensorNumerics measured(DType dtype, const std::vector<double>& values) {
  return measure(tensor(dtype, values).view(), nullptr);
}

TensorNumerics rounded(DType dtype, const std::vector<double>& values) {
  const Tensor source = tensor(DType::float32, values);
  const TensorView view = source.view();
  return measure(tensor(dtype, values).view(), &view);
}

}  // namespace

TEST_CASE("numerics: what a tensor holds is counted") {
  const TensorNumerics n = measured(DType::float16,
                                    {0,
                                     -0.0,
                                     1,
                                     -1.5,
                                     1000,
                                     0x1p-14,  // the smallest normal number
                                     0x1p-15,
                                     -0x1p-24,
                                     k_infinity,
                                     std::nan("")});
  CHECK(n.dtype == "float16");
  CHECK(n.elements == 10);
  CHECK(n.absmax == 1000);
  CHECK(*n.headroom_bits == doctest::Approx(std::log2(65504.0 / 1000)));
  CHECK(n.zero_frac == doctest::Approx(0.2));
  CHECK(n.subnormal_frac == doctest::Approx(0.2));
  CHECK(n.nonfinite == 2);
  CHECK_FALSE(n.zero_underflow_frac.has_value());
  CHECK(n.exponents.lo == -24);
  CHECK(n.exponents.total() == 6);
  CHECK(n.exponents.counts.size() == 24 + 9 + 1);
  CHECK(n.exponents.counts.front() == 1);  // -2^-24
  CHECK(n.exponents.counts[24] == 2);      // 1 and -1.5
  CHECK(n.exponents.counts.back() == 1);   // 1000
  CHECK(n.exponents.below(-14) == 2);
}

TEST_CASE("numerics: zeros that rounding made are told from those that were") {
  const TensorNumerics n =
      rounded(DType::float16, {0, 0, 1, 0x1p-30, -0x1p-26, 0x1p-24, 100000, 2});
  CHECK(n.zero_frac == doctest::Approx(4.0 / 8));
  CHECK(*n.zero_underflow_frac == doctest::Approx(2.0 / 8));
  CHECK(n.subnormal_frac == doctest::Approx(1.0 / 8));
  CHECK(n.nonfinite == 1);  // 100000 is above 65504
  CHECK(n.absmax == 100000);
  CHECK(*n.headroom_bits == doctest::Approx(std::log2(65504.0 / 100000)));
  CHECK(n.exponents.lo == -30);
  CHECK(n.exponents.total() == 6);

  const TensorNumerics b = rounded(DType::bfloat16, {0, 1, 0x1p-30, 100000});
  CHECK(*b.zero_underflow_frac == 0);
  CHECK(b.subnormal_frac == 0);
  CHECK(b.nonfinite == 0);
}

TEST_CASE("numerics: tensors without a number") {
  const TensorNumerics none = measured(DType::float16, {});
  CHECK(none.elements == 0);
  CHECK_FALSE(none.headroom_bits.has_value());
  const TensorNumerics zeros = measured(DType::float16, {0, 0});
  CHECK(zeros.zero_frac == 1);
  CHECK_FALSE(zeros.headroom_bits.has_value());
  CHECK(zeros.exponents.counts.empty());
  CHECK_FALSE(safe_window(zeros.exponents, zeros.absmax, 1).has_value());
}

TEST_CASE("numerics: at the ends of the window a float16 gradient is safe, beyond them not") {
  struct Row {
    std::string_view what;
    std::vector<double> values;  ///< of the gradient itself, without a scale
  };
  std::vector<double> many(3000, 1e-4);
  many[0] = 1e-9;  // one in three thousand may go
  const Row rows[]{{"small", {1e-7, 2e-6, 3e-9}},
                   {"large", {1e3, 5, 0.25}},
                   {"powers", {0x1p-10, 0x1p-20}},
                   {"one outlier below", many}};
  const auto share_lost = [](const std::vector<double>& values, double scale) {
    std::vector<double> scaled = values;
    for (double& value : scaled) value *= scale;
    return *rounded(DType::float16, scaled).zero_underflow_frac;
  };
  const auto overflows = [](const std::vector<double>& values, double scale) {
    std::vector<double> scaled = values;
    for (double& value : scaled) value *= scale;
    return measured(DType::float16, scaled).nonfinite > 0;
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    for (const double scale : {1.0, 1024.0}) {
      std::vector<double> scaled = row.values;
      for (double& value : scaled) value *= scale;
      const TensorNumerics n = measured(DType::float32, scaled);
      const auto window = safe_window(n.exponents, n.absmax, scale);
      REQUIRE(window);
      CAPTURE(window->low);
      CAPTURE(window->high);
      CHECK(std::exp2(std::round(std::log2(window->low))) == window->low);
      CHECK(std::exp2(std::round(std::log2(window->high))) == window->high);
      CHECK(share_lost(row.values, window->low) <= 1e-3);
      CHECK(share_lost(row.values, window->low / 8) > 1e-3);
      CHECK_FALSE(overflows(row.values, window->high));
      CHECK(overflows(row.values, window->high * 2));
    }
  }
}

TEST_CASE("numerics: exponents of two tensors add up") {
  ExponentCounts a = measured(DType::float32, {1, 2, 3}).exponents;
  a.add(measured(DType::float32, {0.25, 2, 64}).exponents);
  CHECK(a.lo == -2);
  CHECK(a.counts == std::vector<std::int64_t>{1, 0, 1, 3, 0, 0, 0, 0, 1});
  ExponentCounts empty;
  empty.add(a);
  CHECK(empty == a);
  a.add(ExponentCounts{});
  CHECK(empty == a);
}

TEST_CASE("numerics: steps merge by maximum, mean, sum and common window") {
  TensorNumerics a = measured(DType::float16, {0, 1, 2, 4});
  a.safe_loss_scale = ScaleWindow{4, 1024};
  TensorNumerics b = measured(DType::float16, {0, 0, 16, k_infinity});
  b.safe_loss_scale = ScaleWindow{2, 256};
  merge(a, b);
  merge(a, measured(DType::float16, {1, 1, 1, 1}));
  CHECK(a.steps == 3);
  CHECK(a.absmax == 16);
  CHECK(*a.headroom_bits == doctest::Approx(std::log2(65504.0 / 16)));
  CHECK(a.zero_frac == doctest::Approx(0.25));
  CHECK(a.nonfinite == 1);
  CHECK(a.exponents.total() == 8);
  CHECK(*a.safe_loss_scale == ScaleWindow{4, 256});
}

namespace {

struct Samples final : TrainObserver {
  std::vector<NumericsSample> samples;
  void on_numerics(const NumericsSample& sample) override { samples.push_back(sample); }
};

/// The samples of a run, which must end as it does without them.
std::vector<NumericsSample> samples_of(const std::string& precision, const std::string& numerics) {
  TinyRun tiny;
  tiny.precision = precision;
  config::RunSpec spec = tiny.spec();
  Run plain(spec);
  const std::string expected = plain.finish().state_hash;
  spec.report.numerics.mode =
      numerics == "full" ? config::NumericsMode::full : config::NumericsMode::sample;
  spec.report.numerics.every = 5;
  Session session(spec, digits(), cpu());
  Samples samples;
  TrainOptions options;
  options.numerics = true;
  Trainer trainer(session, options, samples);
  while (trainer.advance(100)) {
  }
  const TrainResult result = trainer.finish();
  CHECK(result.state_hash == expected);
  CHECK(result.numerics.sampled_steps.size() == samples.samples.size());
  for (const StepSample& step : result.steps) {
    if (numerics == "full") CHECK_FALSE(step.counted);
  }
  return samples.samples;
}

}  // namespace

TEST_CASE("numerics: sampling changes no bit and sees every 16-bit value and weight gradient") {
  for (std::string_view policy : {"mixed_float16", "mixed_bfloat16", "float32"}) {
    CAPTURE(policy);
    // A scale at which nothing overflows.
    const auto samples =
        samples_of(fmt::format("{{policy: {}{}}}",
                               policy,
                               policy == "mixed_float16" ? ", loss_scale: {initial: 256}" : ""),
                   "sample");
    REQUIRE(samples.size() == 3);
    CHECK(samples[1].ordinal == 5);
    CHECK(samples[2].ordinal == 10);
    CHECK(samples[0].loss_scale.has_value() == (policy == "mixed_float16"));
    std::int64_t weight_gradients = 0, activations = 0, gradients = 0;
    std::set<std::string> names;
    for (const TensorNumerics& n : samples[1].tensors) {
      CAPTURE(n.name);
      CHECK(names.insert(n.name).second);
      CHECK(n.nonfinite == 0);
      CHECK(n.elements > 0);
      if (n.dtype == "float32") {
        ++weight_gradients;
        REQUIRE(n.safe_loss_scale);
        CHECK(n.safe_loss_scale->low <= n.safe_loss_scale->high);
      } else {
        CHECK("mixed_" + n.dtype == policy);
        ++(n.phase == "backward" ? gradients : activations);
      }
    }
    CHECK(weight_gradients == 6);  // two kernels, two biases, gamma, beta
    CHECK((activations > 0) == (policy != "float32"));
    CHECK((gradients > 0) == (policy != "float32"));
  }
}

TEST_CASE("numerics: full samples every step; the window follows the scale it was seen at") {
  const auto low = samples_of("{policy: mixed_float16, loss_scale: {initial: 1024}}", "full");
  const auto high = samples_of("{policy: mixed_float16, loss_scale: {initial: 4096}}", "full");
  REQUIRE(low.size() == 12);
  CHECK(low[0].loss_scale == 1024);
  REQUIRE(low[0].tensors.size() == high[0].tensors.size());
  // The first step has the same gradients at either scale, up to rounding.
  for (std::size_t i = 0; i < low[0].tensors.size(); ++i) {
    const TensorNumerics &a = low[0].tensors[i], &b = high[0].tensors[i];
    CAPTURE(a.name);
    if (!a.safe_loss_scale || !b.safe_loss_scale) continue;
    CHECK(std::abs(std::log2(a.safe_loss_scale->high / b.safe_loss_scale->high)) <= 1);
    if (a.dtype == "float16") CHECK(b.absmax == doctest::Approx(4 * a.absmax).epsilon(0.01));
    if (a.dtype == "float32") CHECK(b.absmax == doctest::Approx(a.absmax).epsilon(0.01));
  }
}

}  // namespace halfstep::train
