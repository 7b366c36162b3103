// data.augment.mixup: the weights that are drawn, the loss of mixed samples, and combinations that
// make no sense.

#include "nn/mixup.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <ostream>
#include <string>

#include "backend/backend.h"
#include "config/load.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "support/tolerance.h"

namespace halfstep::nn {
namespace {

constexpr std::int64_t k_mixed_rows = 6, k_mixup_inputs = 4, k_mixup_classes = 3;

StepSpec mixup_spec(std::string_view loss,
                    Diagnostics& diagnostics,
                    std::string_view layers = "[{type: dense, units: 3, name: logits}]",
                    std::string_view more = "") {
  const std::string text = fmt::format(
      "seed: 3\ndata:\n  name: mnist\n  augment: {{mixup: {{alpha: 0.5}}}}\n"
      "model: {{input: [4], layers: {}}}\nloss: {}\noptimizer: {{type: sgd, learning_rate: 0.5}}\n"
      "metrics: [accuracy]\n{}",
      layers,
      loss,
      more);
  const config::RunSpec spec =
      config::parse_run_spec(config::load_text(text, "m", diagnostics), diagnostics);
  return diagnostics.empty() ? read_step_spec(spec, diagnostics) : StepSpec{};
}

/// A step of training on samples that are multiples of 1/8.
struct MixupStep {
  graph::Graph graph;
  plan::Plan plan;
  plan::State state;
  plan::Arena arena;

  MixupStep(const StepSpec& spec, bool one_hot, Purpose purpose = Purpose::train)
      : graph(build_step(spec,
                         {{k_mixup_inputs},
                          DType::float32,
                          one_hot ? Shape{k_mixup_classes} : Shape{},
                          one_hot ? DType::float32 : DType::int32},
                         k_mixed_rows,
                         purpose)),
        plan(plan::compile(graph, backend::cpu_reference())),
        state(graph, 0) {
    float* kernel = state.tensor("logits/kernel").as<float>();
    for (int i = 0; i < k_mixup_inputs * k_mixup_classes; ++i)
      kernel[i] = static_cast<float>(i % 7 - 3) / 4;
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    for (std::int64_t i = 0; i < plan.input("images").elements(); ++i) {
      plan.input("images").as<float>()[i] = sample(i / k_mixup_inputs, i % k_mixup_inputs);
    }
    for (std::int64_t row = 0; row < plan.input("images").shape[0]; ++row) {
      if (!one_hot) plan.input("labels").as<std::int32_t>()[row] = label(row);
      for (std::int32_t k = 0; one_hot && k < k_mixup_classes; ++k) {
        plan.input("labels").as<float>()[row * k_mixup_classes + k] = label(row) == k ? 1 : 0;
      }
    }
  }

  void run(std::int64_t ordinal) {
    *plan.input("ordinal").as<std::int64_t>() = ordinal;
    plan.run();
  }
  double loss() { return static_cast<double>(plan.read<float>("loss")); }
  double accuracy() { return static_cast<double>(plan.read<float>("metric/accuracy")); }

  static float sample(std::int64_t row, std::int64_t i) {
    return static_cast<float>((row * 5 + i * 3) % 17 - 8) / 8;
  }
  static std::int32_t label(std::int64_t row) { return static_cast<std::int32_t>(row * row % 3); }
};

/// The weights of the samples in a step, by the quantiles of the numbers that are drawn.
std::vector<double> mixup_weights(std::int64_t ordinal, const BatchShare& share) {
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const graph::Value number = b.placeholder("ordinal", DType::int64, {});
  const Mixup mixup(b, 0.5, number, 3, share);
  const Shape rows{share.samples, 1};
  const graph::Value one = b.fill(DType::float32, rows, 1), zero = b.fill(DType::float32, rows, 0);
  graph.fetches().emplace_back("weights", mixup.mean(one, zero));
  plan::Plan plan = plan::compile(graph, backend::cpu_reference());
  plan::State state(graph, 0);
  plan::Arena arena;
  arena.reserve(plan.arena_bytes());
  plan.bind(state, arena);
  *plan.input("ordinal").as<std::int64_t>() = ordinal;
  plan.run();
  const TensorView got = plan.fetch("weights");
  std::vector<double> weights;
  for (std::int64_t i = 0; i < got.elements(); ++i) weights.push_back(element_as_double(got, i));
  return weights;
}

/// The loss and the number of hits of a step in double.
std::pair<double, double> expected_of_mixup(const std::vector<double>& weights) {
  double loss = 0, hits = 0;
  for (std::int64_t row = 0; row < k_mixed_rows; ++row) {
    const double w = weights[static_cast<std::size_t>(row)];
    double scores[k_mixup_classes] = {}, sum = 0;
    for (int k = 0; k < k_mixup_classes; ++k) {
      for (std::int64_t i = 0; i < k_mixup_inputs; ++i) {
        const auto own = static_cast<double>(MixupStep::sample(row, i));
        const auto partner = static_cast<double>(MixupStep::sample(row + k_mixed_rows, i));
        const double kernel = static_cast<double>((i * k_mixup_classes + k) % 7 - 3) / 4;
        scores[k] += (w * own + (1 - w) * partner) * kernel;
      }
      sum += std::exp(scores[k]);
    }
    const int own = MixupStep::label(row), partner = MixupStep::label(row + k_mixed_rows);
    loss += std::log(sum) - w * scores[own] - (1 - w) * scores[partner];
    const auto winner = std::max_element(scores, scores + k_mixup_classes) - scores;
    hits += winner == (w >= 0.5 ? own : partner) ? 1 : 0;
  }
  return {loss / k_mixed_rows, hits};
}

constexpr std::string_view k_mixup_sparse =
    "{type: sparse_categorical_crossentropy, from_logits: true}";
constexpr std::string_view k_mixup_categorical =
    "{type: categorical_crossentropy, from_logits: true}";

std::string mixup_problem(std::string_view loss,
                          std::string_view layers = "[{type: dense, units: 3, name: logits}]") {
  Diagnostics diagnostics;
  mixup_spec(loss, diagnostics, layers);
  if (diagnostics.empty()) return {};
  const Problem& first = diagnostics.problems().front();
  return fmt::format("{}:{}: {}", first.where.line, first.where.column, first.message);
}

TEST_CASE("mixup: quantiles of the beta distribution") {
  for (int i = 0; i <= 64; ++i) {
    const double u = i / 64.0;
    const auto at = static_cast<std::size_t>(i);
    CHECK(std::abs(beta_quantiles(1, 64)[at] - u) < 1e-9);
    const double arcsine = std::pow(std::sin(std::numbers::pi / 2 * u), 2);
    CHECK(std::abs(beta_quantiles(0.5, 64)[at] - arcsine) < 1e-6);
  }
  // By scipy.stats.beta.ppf.
  struct {
    double alpha;
    std::size_t i;
    double quantile;
  } known[] = {{0.2, 3, 0.005720805},
               {0.2, 5, 0.070364468},
               {0.2, 7, 0.311814422},
               {0.2, 12, 0.976185281},
               {0.8, 3, 0.154333055},
               {0.8, 5, 0.287197108},
               {0.8, 7, 0.428246508},
               {0.8, 12, 0.780705237}};
  for (const auto& k : known) {
    CAPTURE(k.alpha);
    CAPTURE(k.i);
    CHECK(std::abs(beta_quantiles(k.alpha, 16)[k.i] - k.quantile) < 1e-6);
  }
}

TEST_CASE("mixup: the loss is that of mixed labels, for class numbers and one-hot rows") {
  for (const bool one_hot : {false, true}) {
    CAPTURE(one_hot);
    Diagnostics diagnostics;
    const StepSpec spec = mixup_spec(one_hot ? k_mixup_categorical : k_mixup_sparse, diagnostics);
    diagnostics.throw_if_any();
    std::vector<double> before;
    for (const std::int64_t ordinal : {0, 1, 7}) {
      CAPTURE(ordinal);
      const std::vector<double> weights = mixup_weights(ordinal, k_mixed_rows);
      CHECK(weights != before);
      before = weights;
      MixupStep step(spec, one_hot);
      step.run(ordinal);
      const auto [loss, hits] = expected_of_mixup(weights);
      CHECK(
          std::abs(step.loss() - loss) <=
          testing::tolerance(DType::float32, DType::float32, 4 * k_mixed_rows * k_mixup_inputs, 4));
      CHECK(step.accuracy() == hits);
    }
  }
}

TEST_CASE("mixup: class weights are those of both labels") {
  Diagnostics diagnostics;
  const StepSpec plain = mixup_spec(k_mixup_sparse, diagnostics);
  const StepSpec doubled = mixup_spec(k_mixup_sparse,
                                      diagnostics,
                                      "[{type: dense, units: 3, name: logits}]",
                                      "training: {class_weight: {0: 2, 1: 2, 2: 2}}\n");
  diagnostics.throw_if_any();
  MixupStep one(plain, false), two(doubled, false);
  one.run(0);
  two.run(0);
  CHECK(two.loss() == doctest::Approx(2 * one.loss()).epsilon(1e-6));
}

TEST_CASE("mixup: the weight of a sample depends on its position in the batch of all ranks") {
  const std::vector<double> alone = mixup_weights(4, 7);
  std::vector<double> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    for (const double w : mixup_weights(4, BatchShare(7, rank, 3))) ranks.push_back(w);
  }
  CHECK(ranks == alone);
}

TEST_CASE("mixup: an evaluation mixes nothing") {
  Diagnostics diagnostics;
  const StepSpec spec = mixup_spec(k_mixup_sparse, diagnostics);
  diagnostics.throw_if_any();
  MixupStep step(spec, false, Purpose::evaluate);
  CHECK(step.plan.input("images").shape[0] == k_mixed_rows);
  step.run(0);
  std::vector<double> own(k_mixed_rows, 1.0);
  CHECK(step.loss() == doctest::Approx(expected_of_mixup(own).first).epsilon(1e-6));
}

TEST_CASE("mixup: losses and models that it makes no sense for are refused") {
  CHECK(mixup_problem(k_mixup_sparse) == "");
  CHECK(mixup_problem("{type: binary_crossentropy, from_logits: true}") == "");
  CHECK(mixup_problem("mean_squared_error").starts_with("4:20: mixes the losses of two labels"));
  CHECK(mixup_problem(k_mixup_sparse,
                      "[{type: embedding, input_dim: 9, output_dim: 2}, {type: flatten}, "
                      "{type: dense, units: 3}]")
            .find("are indices") != std::string::npos);
  Diagnostics diagnostics;
  const StepSpec spec =
      mixup_spec(k_mixup_sparse,
                 diagnostics,
                 "[{type: reshape, target_shape: [2, 2]}, {type: dense, units: 3, name: logits}]");
  diagnostics.throw_if_any();
  CHECK_THROWS_WITH_AS(build_step(spec,
                                  {{k_mixup_inputs}, DType::float32, {2}, DType::int32},
                                  k_mixed_rows,
                                  Purpose::train),
                       doctest::Contains("one at each position"),
                       UserError);
}

}  // namespace
}  // namespace halfstep::nn
