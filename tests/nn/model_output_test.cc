// Scores for a loss of probabilities, and the reverse, are detected before training.

#include "nn/model_output.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/merge.h"
#include "core/ranges.h"
#include "nn/step_graph.h"

namespace halfstep::nn {
namespace {

config::RunSpec spec_of(std::string_view layers,
                        std::string_view loss,
                        std::string_view more = "") {
  Diagnostics diagnostics;
  const std::string text =
      "data: {name: mnist}\nmodel:\n  input: [784]\n  layers: " + std::string(layers) +
      "\nloss: " + std::string(loss) + "\noptimizer: sgd\n" + std::string(more);
  config::RunSpec spec =
      config::parse_run_spec(config::load_text(text, "m", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return spec;
}

std::vector<std::string> codes(const config::RunSpec& spec) {
  Diagnostics diagnostics;
  std::vector<std::string> codes;
  for (const config::Warning& w : read_step_spec(spec, diagnostics).model.warnings) {
    codes.push_back(w.code);
  }
  diagnostics.throw_if_any();
  return codes;
}

/// The codes of the warnings about the training step of a regression.
std::vector<std::string> codes_of_step(std::string_view layers, const std::string& precision) {
  const config::RunSpec spec =
      spec_of(layers, "mean_squared_error", "precision: " + precision + "\n");
  Diagnostics diagnostics;
  const StepSpec step = read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  DataShape data;
  data.sample = step.model.inputs.at(0).shape;
  data.label = step.outputs[0].form.shape;
  data.label_dtype = DType::float32;
  const graph::Graph graph = build_step(step, data, 2, Purpose::train);
  std::vector<std::string> codes;
  for (const config::Warning& w : graph_warnings(spec, step, graph)) codes.push_back(w.code);
  return codes;
}

/// Whether the training step of a regression is warned of a loss scale without use.
bool idle_scale(std::string_view layers, const std::string& precision) {
  return contains(codes_of_step(layers, precision), "W106");
}

constexpr std::string_view k_sparse = "sparse_categorical_crossentropy";

}  // namespace

TEST_CASE("loss: scores in a loss of probabilities are warned about, and the other way round") {
  struct Case {
    std::string_view name, layers, loss;
    std::vector<std::string> want;
  };
  const std::string_view scores = "[{type: dense, units: 10}]";
  const std::string_view softmax = "[{type: dense, units: 10, activation: softmax}]";
  const std::string_view from_logits = "{type: sparse_categorical_crossentropy, from_logits: true}";
  const Case cases[] = {
      {"scores", scores, k_sparse, {"W113"}},
      {"relu", "[{type: dense, units: 10, activation: relu}]", k_sparse, {"W113"}},
      {"log softmax", "[{type: dense, units: 10}, {type: log_softmax}]", k_sparse, {"W113"}},
      {"softmax before more weights",
       "[{type: dense, units: 10, activation: softmax}, {type: dense, units: 10}]",
       k_sparse,
       {"W113"}},
      {"softmax", softmax, k_sparse, {}},
      {"softmax in another dtype",
       "[{type: dense, units: 10}, {type: softmax, dtype: mixed_bfloat16}]",
       k_sparse,
       {}},
      {"softmax, then its shape changed",
       "[{type: dense, units: 10}, {type: softmax}, {type: reshape, target_shape: [10]}]",
       k_sparse,
       {}},
      {"mean of steps",
       "[{type: dense, units: 20}, {type: reshape, target_shape: [2, 10]}, {type: softmax}, {type: "
       "global_average_pooling1d}]",
       k_sparse,
       {}},
      {"dropout of probabilities",
       "[{type: dense, units: 10}, {type: softmax}, {type: dropout, rate: 0.1}]",
       k_sparse,
       {}},
      {"silu, which has a sigmoid inside",
       "[{type: dense, units: 10, activation: silu}]",
       k_sparse,
       {"W113"}},
      {"softmax before a normalization",
       "[{type: dense, units: 10, activation: softmax}, {type: layer_normalization}]",
       k_sparse,
       {"W113"}},
      {"softmax before a transposed convolution",
       "[{type: dense, units: 784, activation: softmax}, {type: reshape, target_shape: [7, 7, "
       "16]}, "
       "{type: conv2d_transpose, filters: 10, kernel_size: 7}, {type: global_max_pooling2d}]",
       k_sparse,
       {"W113"}},
      {"scores that are said to be scores", scores, from_logits, {}},
      {"softmax that is said to be scores", softmax, from_logits, {"W114"}},
      {"softmax before a loss of signs", softmax, "hinge", {"W114"}},
      {"one event without sigmoid", "[{type: dense, units: 1}]", "binary_crossentropy", {"W113"}},
      {"one event", "[{type: dense, units: 1, activation: sigmoid}]", "binary_crossentropy", {}},
      {"a regression has no bounds", "[{type: dense, units: 1}]", "mean_squared_error", {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(codes(spec_of(c.layers, c.loss)) == c.want);
  }
}

TEST_CASE("loss: from_logits is the remedy for scores only where the loss has it") {
  for (const auto& [loss, has] :
       {std::pair("categorical_crossentropy", true), std::pair("kl_divergence", false)}) {
    CAPTURE(std::string(loss));
    Diagnostics diagnostics;
    const StepSpec step = read_step_spec(spec_of("[{type: dense, units: 10}]", loss), diagnostics);
    REQUIRE(step.model.warnings.size() == 1);
    CHECK(step.model.warnings[0].code == "W113");
    CHECK((step.model.warnings[0].message.find("from_logits") != std::string::npos) == has);
  }
}

TEST_CASE("model: an input of which only the shape is used is warned of") {
  const std::string_view positions =
      "[{type: reshape, target_shape: [28, 28]}, {type: position_embedding, sequence_length: 28}, "
      "{type: flatten}, {type: dense, units: 10, activation: softmax}]";
  CHECK(codes(spec_of(positions, k_sparse)) == std::vector<std::string>{"W125"});
}

TEST_CASE("model: a softmax over one unit is refused, which is always 1") {
  for (const std::string_view loss : {"binary_crossentropy", "kl_divergence"}) {
    Diagnostics diagnostics;
    read_step_spec(spec_of("[{type: dense, units: 1, activation: softmax}]", loss), diagnostics);
    REQUIRE(diagnostics.problems().size() == 1);
    CHECK(diagnostics.problems()[0].message.starts_with("gets a softmax over one unit"));
  }
}

TEST_CASE("optimizer: ftrl is refused with a learning rate of 0, by which it divides") {
  for (const auto& [rate, wrong] :
       {std::pair("0", true),
        std::pair("{type: constant, initial_learning_rate: 0.1, warmup_steps: 5}", true),
        std::pair("0.1", false)}) {
    CAPTURE(std::string(rate));
    config::RunSpec spec = spec_of("[{type: dense, units: 1}]", "mean_squared_error");
    Diagnostics diagnostics;
    spec.optimizer.type = "ftrl";
    spec.optimizer.node.entries.push_back(
        {"learning_rate", {}, config::load_value(rate, "rate", diagnostics)});
    read_step_spec(spec, diagnostics);
    CHECK(!diagnostics.empty() == wrong);
  }
}

TEST_CASE("embedding: mask_zero over windows of a text, which have no padding, is warned of") {
  const std::string_view layers =
      "[{type: embedding, input_dim: 20, output_dim: 4, mask_zero: true}, {type: dense, units: "
      "20, activation: softmax}]";
  for (const auto& [tokens, warned] : {std::pair("word", true), std::pair("byte", false)}) {
    CAPTURE(std::string(tokens));
    config::RunSpec spec = spec_of(layers, k_sparse);
    spec.model.input = {8};
    spec.data = {};
    spec.data.format = config::DataFormat::text;
    spec.data.text.emplace();
    spec.data.text->tokens =
        std::string(tokens) == "word" ? config::TextTokens::word : config::TextTokens::byte;
    CHECK(contains(codes(spec), "W126") == warned);
  }
}

TEST_CASE("loss scale: one that nothing in float16 needs is warned about") {
  struct Case {
    std::string_view precision;
    bool idle;
  };
  for (const Case& c : {Case{"{policy: float32, loss_scale: dynamic}", true},
                        Case{"{policy: float32, loss_scale: 1024}", true},
                        Case{"{policy: mixed_bfloat16, loss_scale: dynamic}", true},
                        Case{"{policy: mixed_bfloat16, loss_scale: {initial: 8}}", true},
                        Case{"{policy: float32}", false},
                        Case{"{policy: float32, loss_scale: none}", false},
                        Case{"{policy: mixed_bfloat16, loss_scale: auto}", false},
                        Case{"{policy: mixed_float16, loss_scale: dynamic}", false}}) {
    CAPTURE(c.precision);
    CHECK(idle_scale("[{type: dense, units: 1}]", std::string(c.precision)) == c.idle);
  }
  CHECK_FALSE(idle_scale("[{type: dense, units: 4, dtype: mixed_float16}, {type: dense, units: 1}]",
                         "{loss_scale: dynamic}"));
}

TEST_CASE("model: trainable weights that no gradient reaches are warned about") {
  const std::string_view rest =
      "{type: embedding, input_dim: 8, output_dim: 4}, {type: flatten}, {type: dense, units: 1}]";
  const auto warned = [&](const std::string& layers) {
    return contains(codes_of_step(layers, "{policy: mixed_float16}"), "W121");
  };
  CHECK(warned(fmt::format("[{{type: dense, units: 4}}, {}", rest)));
  CHECK_FALSE(warned(fmt::format("[{{type: dense, units: 4, trainable: false}}, {}", rest)));
  CHECK_FALSE(warned(fmt::format("[{}", rest)));
  CHECK_FALSE(
      warned("[{type: dense, units: 4}, {type: batch_normalization}, {type: reshape, "
             "target_shape: [2, 2]}, {type: bidirectional, layer: {type: gru, units: 3}}, "
             "{type: dense, units: 1}]"));
}

TEST_CASE(
    "loss: real values are compared by those alone that take neither probabilities nor scores") {
  for (const LossDef* def : loss_table()) {
    CAPTURE(def->type);
    Diagnostics diagnostics;
    config::RunSpec spec;
    spec.loss.type = def->type;
    spec.loss.node.kind = config::Node::Kind::map;
    const auto loss = make_loss(spec.loss, diagnostics);
    REQUIRE(loss != nullptr);
    CHECK(spec.regression() == !(loss->takes_probabilities() || loss->from_logits()));
  }
}

TEST_CASE("metrics: a regression is measured by its error unless the config says otherwise") {
  const std::string_view layers = "[{type: dense, units: 1}]";
  CHECK(spec_of(layers, "mean_squared_error").metrics ==
        std::vector<std::string>{"mean_absolute_error"});
  CHECK(spec_of(layers, "mean_squared_error", "metrics: [accuracy]\n").metrics ==
        std::vector<std::string>{"accuracy"});
  CHECK(spec_of(layers, "binary_crossentropy").metrics == std::vector<std::string>{"accuracy"});
}

TEST_CASE("metrics: those that mean nothing for the loss and its output are refused") {
  struct Case {
    std::string_view units, loss, metrics, said;
  };
  for (const Case& c : {
           Case{"1",
                "mean_squared_error",
                "[accuracy]",
                "(mean_absolute_error, mean_squared_error, root_mean_squared_error fit)"},
           Case{"1", "mean_squared_error", "[loss_of_nothing]", "unknown metric"},
           Case{"1", "mean_squared_error", "[mean_absolute_error, top_1_accuracy]", "metrics[1]"},
           Case{"10", "mean_squared_error", "[accuracy, top_9_accuracy]", ""},
           Case{"10", k_sparse, "[top_10_accuracy]", "is always 1 for 10 outputs"},
           Case{"10", k_sparse, "[mean_squared_error]", ""},
           Case{"10",
                "{type: sparse_categorical_crossentropy, from_logits: true}",
                "[accuracy, mean_absolute_error]",
                "scores without bounds (accuracy, mean_io_u, perplexity, top_5_accuracy fit)"},
           Case{"1", "binary_crossentropy", "[accuracy, precision, recall, f1_score]", ""},
           Case{"1", "{type: binary_crossentropy, from_logits: true}", "[recall]", ""},
           Case{"1", "binary_crossentropy", "[perplexity]", "exp of a categorical"},
           Case{"10",
                "{type: categorical_crossentropy, from_logits: true}",
                "[precision]",
                "are not probabilities"},
           Case{"10", k_sparse, "[perplexity, mean_io_u]", ""},
           Case{"1", "mean_squared_error", "[mean_io_u]", "counts correct classes"},
           Case{"200", k_sparse, "[mean_io_u]", ""},
           Case{"201", k_sparse, "[mean_io_u]", "counts at most 200 classes, not 201"},
       }) {
    CAPTURE(c.loss);
    CAPTURE(c.metrics);
    Diagnostics diagnostics;
    const auto spec = spec_of("[{type: dense, units: " + std::string(c.units) + "}]",
                              c.loss,
                              "metrics: " + std::string(c.metrics) + "\n");
    read_step_spec(spec, diagnostics);
    std::string found;
    for (const Problem& p : diagnostics.problems()) {
      found += fmt::format("{}: {} ({})\n", p.where.path, p.message, p.hint);
    }
    CAPTURE(found);
    CHECK(found.empty() == c.said.empty());
    CHECK(found.find(c.said) != std::string::npos);
  }
}

TEST_CASE("names: those that do not exist are answered with those that do") {
  struct Case {
    std::string_view layers, loss, more, said;
  };
  const std::string_view layers = "[{type: dense, units: 10, activation: softmax}]";
  for (const Case& c :
       {Case{layers,
             "sparse_crossentropy",
             "",
             "one of binary_crossentropy, categorical_crossentropy, cosine_similarity, hinge, "
             "huber, "
             "kl_divergence, log_cosh, mean_absolute_error, mean_absolute_percentage_error, "
             "mean_squared_error, mean_squared_logarithmic_error, poisson, "
             "sparse_categorical_crossentropy"},
        Case{layers, k_sparse, "metrics: [acuracy]\n", "did you mean 'accuracy'? one of accuracy"},
        Case{layers, k_sparse, "metrics: [f1]\n", "one of accuracy, auc, f1_score"},
        Case{"[{type: dense, units: 10, kernel_initializer: xavier}]",
             k_sparse,
             "",
             "one of constant, glorot_normal, glorot_uniform"},
        Case{"[{type: capsule, units: 10}]", k_sparse, "", "'halfstep help layers' lists all"}}) {
    CAPTURE(c.said);
    Diagnostics diagnostics;
    read_step_spec(spec_of(c.layers, c.loss, c.more), diagnostics);
    REQUIRE(!diagnostics.empty());
    CHECK(diagnostics.problems().front().hint.find(c.said) != std::string::npos);
  }
  config::RunSpec spec = spec_of(layers, k_sparse);
  for (const auto& [optimizer, said] :
       {std::pair("{type: lamb}",
                  "one of adadelta, adagrad, adam, adamax, adamw, ftrl, lion, muon, nadam, "
                  "rmsprop, sgd"),
        std::pair("{type: sgd, learning_rate: {type: cosine}}",
                  "one of constant, cosine_decay, cosine_decay_restarts")}) {
    CAPTURE(said);
    Diagnostics diagnostics;
    config::Node node = spec.source;
    config::apply(node,
                  {config::Override::Kind::set, "optimizer", optimizer, "--set optimizer"},
                  diagnostics);
    read_step_spec(config::parse_run_spec(node, diagnostics), diagnostics);
    REQUIRE(!diagnostics.empty());
    CHECK(diagnostics.problems().front().hint.find(said) != std::string::npos);
  }
}

}  // namespace halfstep::nn
