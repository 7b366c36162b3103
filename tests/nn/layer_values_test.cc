// Layer outputs beyond Keras's reference values: random masks, overflow, NaN.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <tuple>

#include "nn/evaluate_model.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using test::Evaluated;

struct Run {
  std::string_view input;
  std::string_view layer;
  std::string_view policy = "float32";
  std::int64_t batch = 2;
  bool training = true;
  std::int64_t ordinal = 0;
};

Evaluated run(const Run& r, const test::Fill& fill) {
  const test::ModelText text =
      test::good_model(fmt::format("{{input: {}, layers: [{{{}}}]}}", r.input, r.layer),
                       fmt::format("{{policy: {}}}", r.policy));
  return test::evaluate_model(test::build_model(text.model, r.batch, r.training), fill, r.ordinal);
}

std::vector<double> output(const Run& r, const test::Fill& fill) {
  return test::elements(run(r, fill).outputs.at(0));
}

float one(std::int64_t) { return 1; }

TEST_CASE("dropout: about the asked share is zeroed and the rest scaled to keep the mean") {
  constexpr std::int64_t k_width = 5000;
  for (const double rate : {0.125, 0.5, 0.875}) {
    CAPTURE(rate);
    const std::string layer = fmt::format("type: dropout, rate: {}", rate);
    const std::vector<double> y = output({"[5000]", layer}, one);
    const double scaled = static_cast<float>(1 / (1 - rate));
    const std::int64_t zeros = std::count(y.begin(), y.end(), 0.0);
    CHECK(zeros + std::count(y.begin(), y.end(), scaled) == std::ssize(y));
    // Five standard deviations of a binomial count.
    const double n = 2 * k_width;
    CHECK(std::abs(static_cast<double>(zeros) - n * rate) < 5 * std::sqrt(n * rate * (1 - rate)));
  }
}

TEST_CASE("dropout: the mask depends on ordinal, layer and seed, and on nothing else") {
  const auto mask = [](std::string_view layer, std::string_view policy, std::int64_t ordinal) {
    std::vector<bool> kept;
    for (const double v : output({"[64]", layer, policy, 2, true, ordinal}, one)) {
      kept.push_back(v != 0);
    }
    return kept;
  };
  const std::vector<bool> base = mask("name: a, type: dropout, rate: 0.5", "float32", 3);
  CHECK(mask("name: a, type: dropout, rate: 0.5", "float32", 3) == base);
  CHECK(mask("name: a, type: dropout, rate: 0.5", "mixed_float16", 3) == base);
  CHECK(mask("name: a, type: dropout, rate: 0.5", "mixed_bfloat16", 3) == base);
  CHECK(mask("name: a, type: dropout, rate: 0.5", "float32", 4) != base);
  CHECK(mask("name: b, type: dropout, rate: 0.5", "float32", 3) != base);
  CHECK(mask("name: a, type: dropout, rate: 0.5, seed: 1", "float32", 3) != base);
  const std::vector<bool> first(base.begin(), base.begin() + 64);
  const std::vector<bool> second(base.begin() + 64, base.end());
  CHECK(first != second);
}

TEST_CASE("dropout: noise_shape shares the mask along axes of one") {
  const std::vector<double> y =
      output({"[3, 8]", "type: dropout, rate: 0.5, noise_shape: [-1, 1, 8]"}, one);
  for (std::size_t sample = 0; sample < 2; ++sample) {
    for (std::size_t row = 1; row < 3; ++row) {
      for (std::size_t i = 0; i < 8; ++i) {
        CHECK(y[(sample * 3 + row) * 8 + i] == y[sample * 3 * 8 + i]);
      }
    }
  }
}

TEST_CASE("spatial_dropout: a channel of a sample is zeroed as a whole") {
  for (const auto& [input, layer, places] :
       {std::tuple("[5, 64]", "type: spatial_dropout1d, rate: 0.5", 5),
        std::tuple("[3, 4, 64]", "type: spatial_dropout2d, rate: 0.5", 12)}) {
    CAPTURE(layer);
    const std::vector<double> y = output({input, layer}, one);
    std::set<double> of_channels;
    for (std::size_t sample = 0; sample < 2; ++sample) {
      for (std::size_t channel = 0; channel < 64; ++channel) {
        std::set<double> values;
        for (std::size_t place = 0; place < static_cast<std::size_t>(places); ++place) {
          values.insert(y[(sample * static_cast<std::size_t>(places) + place) * 64 + channel]);
        }
        CHECK(values.size() == 1);
        of_channels.insert(values.begin(), values.end());
      }
    }
    CHECK(of_channels == std::set<double>{0, 2});
  }
}

TEST_CASE("alpha_dropout: mean 0 and variance 1 are kept, under each policy") {
  // Two values of mean 0 and variance 1.
  const auto fill = [](std::int64_t i) { return i % 2 == 0 ? -1.0F : 1.0F; };
  for (const std::string_view policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
    CAPTURE(policy);
    const std::vector<double> y =
        output({"[20000]", "type: alpha_dropout, rate: 0.25", policy}, fill);
    const auto n = static_cast<double>(y.size());
    double sum = 0, squares = 0;
    for (const double value : y) {
      sum += value;
      squares += value * value;
    }
    // Five standard deviations; bfloat16 rounds each of three terms by up to 2^-8 of about 1.
    const double rounding = policy == "mixed_bfloat16" ? 0x1p-7 : policy == "float32" ? 0 : 0x1p-10;
    CHECK(std::abs(sum / n) < 5 / std::sqrt(n) + rounding);
    CHECK(std::abs(squares / n - 1) < 10 / std::sqrt(n) + 2 * rounding);
    CHECK(std::set<double>(y.begin(), y.end()).size() == 3);
  }
}

TEST_CASE("random_flip: each sample is mirrored or left as it is") {
  constexpr std::int64_t k_batch = 64;
  const auto fill = [](std::int64_t i) { return static_cast<float>(i % 4); };
  for (const std::string_view mode : {"horizontal", "vertical", "horizontal_and_vertical"}) {
    CAPTURE(mode);
    const std::string layer = fmt::format("type: random_flip, mode: {}", mode);
    const std::vector<double> y = output({"[2, 2, 1]", layer, "float32", k_batch}, fill);
    std::set<std::vector<double>> kinds;
    for (std::size_t i = 0; i < y.size(); i += 4) {
      kinds.insert({y.begin() + static_cast<std::ptrdiff_t>(i),
                    y.begin() + static_cast<std::ptrdiff_t>(i) + 4});
    }
    std::set<std::vector<double>> expected{{0, 1, 2, 3}};
    if (mode != "vertical") expected.insert({1, 0, 3, 2});
    if (mode != "horizontal") expected.insert({2, 3, 0, 1});
    if (mode == "horizontal_and_vertical") expected.insert({3, 2, 1, 0});
    CHECK(kinds == expected);
  }
}

TEST_CASE("random_translation: moves by no more than asked and fills with the given value") {
  // At most half of four columns, to the right only; the fill value is -1.
  const std::vector<double> y =
      output({"[1, 4, 1]",
              "type: random_translation, height_factor: 0, width_factor: [0, 0.5], fill_mode: "
              "constant, fill_value: -1, interpolation: nearest",
              "float32",
              64},
             [](std::int64_t i) { return static_cast<float>(i % 4); });
  std::set<std::vector<double>> kinds;
  for (std::size_t i = 0; i < y.size(); i += 4) {
    kinds.insert({y.begin() + static_cast<std::ptrdiff_t>(i),
                  y.begin() + static_cast<std::ptrdiff_t>(i) + 4});
  }
  const std::set<std::vector<double>> expected{{0, 1, 2, 3}, {-1, 0, 1, 2}, {-1, -1, 0, 1}};
  CHECK(kinds == expected);
}

TEST_CASE("batch_normalization: float16 images far from zero neither overflow nor lose variance") {
  // Sums of 60000s overflow float16 at once; 60000 and 60064 are two float16 steps apart.
  const Evaluated got = run({"[4, 4, 1]", "type: batch_normalization", "mixed_float16"},
                            [](std::int64_t i) { return i % 2 == 0 ? 60000.0F : 60064.0F; });
  for (const double v : test::elements(got.outputs.at(0))) {
    CHECK(std::abs(std::abs(v) - 1) < 0.01);
  }
  // Halfway, times 1 - momentum; the variance 32^2 is biased.
  const double mean = 60032 * 0.01;
  const double variance = 1024 * 0.01 + 0.99;
  CHECK(test::elements(got.assigned.at(0)).at(0) == doctest::Approx(mean).epsilon(1e-5));
  CHECK(test::elements(got.assigned.at(1)).at(0) == doctest::Approx(variance).epsilon(1e-5));
}

TEST_CASE("layer_normalization: float16 rows whose squares overflow come out right") {
  for (const std::string_view policy : {"mixed_float16", "float16"}) {
    CAPTURE(policy);
    const std::vector<double> y =
        output({"[8]", "type: layer_normalization", policy},
               [](std::int64_t i) { return i % 2 == 0 ? -500.0F : 700.0F; });
    for (std::size_t i = 0; i < y.size(); ++i) {
      CHECK(std::abs(y[i] - (i % 2 == 0 ? -1 : 1)) < 0.01);
    }
  }
}

TEST_CASE("activity regularizer: sums of squares past the range of float16 stay finite") {
  const test::ModelText text =
      test::good_model("{input: [64], layers: [{type: linear, activity_regularizer: {l2: 1}}]}",
                       "{policy: mixed_float16}");
  test::BuiltModel built = test::build_model(text.model, 2, true);
  built.forward.outputs.push_back(built.forward.record.losses.at(0));
  const Evaluated got = test::evaluate_model(built, [](std::int64_t) { return 128.0F; });
  CHECK(test::elements(got.outputs.at(1)).at(0) == 128.0 * 128 * 64);
}

/// The example of a row on inputs a and b, or on one.
std::string example_model(const LayerDef& def) {
  std::string fields(def.traits.example.substr(1, def.traits.example.size() - 2));
  if (!fields.empty()) fields = ", " + fields;
  const bool two = def.traits.min_inputs > 1;
  return fmt::format(
      "{{inputs: {{a: {0}{1}}}, nodes: {{it: {{type: {2}, from: [a{3}]{4}}}}}, "
      "outputs: it}}",
      def.traits.example_input,
      two ? fmt::format(", b: {}", def.traits.example_input) : "",
      def.type,
      two ? ", b" : "",
      fields);
}

TEST_CASE("layers: not-a-number goes through every layer, so that an overflow stays visible") {
  for (const LayerDef* def : layer_table()) {
    for (const std::string_view policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
      for (const bool training : {false, true}) {
        CAPTURE(def->type);
        CAPTURE(policy);
        CAPTURE(training);
        const test::ModelText text =
            test::good_model(example_model(*def), fmt::format("{{policy: {}}}", policy));
        const Evaluated got = test::evaluate_model(
            test::build_model(text.model, 2, training),
            [](std::int64_t) { return std::numeric_limits<float>::quiet_NaN(); });
        std::vector<double> y = test::elements(got.outputs.at(0));
        // An index is no number to compute with, and a position has none.
        if (def->type == "embedding" || def->type == "position_embedding") continue;
        // Padding, translation and a bias-free border bring numbers of their own.
        const bool any = std::any_of(y.begin(), y.end(), [](double v) { return std::isnan(v); });
        CHECK(any);
      }
    }
  }
}

}  // namespace
}  // namespace halfstep::nn
