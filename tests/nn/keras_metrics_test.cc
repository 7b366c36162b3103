// Metrics whose counters are added over batches, against values that generate_keras_metrics.py has
// taken from Keras 3.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "backend/backend.h"
#include "config/load.h"
#include "nn/metric.h"
#include "plan/plan.h"
#include "support/paths.h"
#include "support/tolerance.h"

namespace halfstep::nn {
namespace {

using nlohmann::json;

/// The losses that perplexity is made of; other metrics do not read them.
graph::Value losses_of(
    graph::Builder& b, graph::Value y, graph::Value labels, bool classes, bool scores) {
  const std::string kind = classes ? "sparse_categorical" : "categorical";
  const json loss{{"type", kind + "_crossentropy"}, {"from_logits", scores}};
  const json config{{"data", {{"name", "mnist"}}},
                    {"model", {{"input", {4}}, {"layers", {"flatten"}}}},
                    {"loss", loss},
                    {"optimizer", "sgd"}};
  Diagnostics diagnostics;
  const config::RunSpec spec =
      config::parse_run_spec(config::load_text(config.dump(), "c.yaml", diagnostics), diagnostics);
  const std::unique_ptr<Loss> made = make_loss(spec.loss, diagnostics);
  diagnostics.throw_if_any();
  return made->build({b, y, {}, {}, labels});
}

/// Adds the counters of rows `first` to `first + rows` of a case to `sums`.
void add_batch(const json& c, std::int64_t first, std::int64_t rows, std::vector<double>& sums) {
  const auto outputs = c["outputs"].get<std::int64_t>();
  const auto name = c["metric"].get<std::string>();
  const bool scores = c["scores"].get<bool>(), classes = c["classes"].get<bool>();
  const bool weighted = c.contains("weights"), losses_needed = name.ends_with("perplexity");
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const graph::Value y = b.placeholder("y", DType::float32, {rows, outputs});
  const graph::Value labels = classes ? b.placeholder("labels", DType::int32, {rows})
                                      : b.placeholder("labels", DType::float32, {rows, outputs});
  const graph::Value losses =
      losses_needed ? losses_of(b, y, labels, classes, scores) : graph::Value{};
  const graph::Value weights =
      weighted ? b.placeholder("weights", DType::float32, {rows}) : graph::Value{};
  for (const graph::Value sum : build_metric({b, y, labels, losses, scores, {}, weights}, name)) {
    graph.fetches().emplace_back(std::to_string(graph.fetches().size()), sum);
  }
  plan::Plan plan = plan::compile(graph, backend::cpu_reference());
  plan::State state(graph, 0);
  plan::Arena arena;
  arena.reserve(plan.arena_bytes());
  plan.bind(state, arena);
  const auto fill = [&](const char* input, const json& values) {
    const TensorView to = plan.input(input);
    const std::int64_t each = to.elements() / rows;
    for (std::int64_t i = 0; i < to.elements(); ++i) {
      const json& value = values[static_cast<std::size_t>(first * each + i)];
      if (classes && to.dtype == DType::int32) {
        to.as<std::int32_t>()[i] = static_cast<std::int32_t>(value.get<double>());
      } else {
        to.as<float>()[i] = value.get<float>();
      }
    }
  };
  fill("y", c["y"]);
  fill("labels", c["labels"]);
  if (weighted) fill("weights", c["weights"]);
  plan.run();
  sums.resize(graph.fetches().size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] += static_cast<double>(plan.read<float>(std::to_string(i)));
  }
}

}  // namespace

TEST_CASE("metrics: counters added over batches give Keras's values") {
  std::ifstream file(test::source_dir() / "tests/nn/data/keras_metrics.json");
  const json data = json::parse(file);
  CHECK(data["cases"].size() >= 29);
  for (const json& c : data["cases"]) {
    const auto name = c["metric"].get<std::string>();
    CAPTURE(c.dump());
    std::vector<double> sums;
    std::int64_t rows = 0;
    for (const json& size : data["sizes"]) {
      add_batch(c, rows, size.get<std::int64_t>(), sums);
      rows += size.get<std::int64_t>();
    }
    const std::vector<std::string> counters =
        counter_names(name, {.shape = {c["outputs"].get<std::int64_t>()}});
    const std::vector<std::string_view> names(counters.begin(), counters.end());
    // Sums of float32 over fewer terms than this on both sides, and the roundings behind them.
    const std::int64_t terms = 2 * rows * c["outputs"].get<std::int64_t>() + 16;
    const double want = c["value"].get<double>();
    const double allowed =
        testing::tolerance(DType::float32, DType::float32, terms, std::max(1.0, want));
    CHECK(std::abs(metric_value(names, sums, static_cast<double>(rows)) - want) <= allowed);
  }
}

TEST_CASE(
    "metrics: a mean has one counter of its own name, others refuse sums that are not theirs") {
  CHECK(counter_names("accuracy", {.shape = {4}}) == std::vector<std::string>{"accuracy"});
  CHECK(counter_names("accuracy", {.shape = {4}, .masked = true}) ==
        std::vector<std::string>{"accuracy/sum", "accuracy/weights"});
  CHECK(metric_of("recall/true_positives") == "recall");
  const std::array<std::string_view, 2> right{"recall/false_negatives", "recall/true_positives"};
  const std::array<double, 2> sums{1, 3};
  CHECK(metric_value(right, sums, 100) == 0.75);
  const std::array<std::string_view, 2> wrong{"recall", "recall/true_positives"};
  CHECK_THROWS_AS(metric_value(wrong, sums, 100), UserError);
  CHECK_THROWS_AS(metric_value(std::span(right).first(1), sums, 100), UserError);
  CHECK(metric_value(std::span(wrong).first(1), sums, 2) == 0.5);
}

}  // namespace halfstep::nn
