// Models of sequences from a config to a result: embeddings, attention, convolutions over steps.

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <string_view>

#include "app/small_run.h"
#include "data/tensor_files.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

/// Samples of six words out of 30, as numbers; the class says whether 7 is among the first five.
std::string sentences(int rows) {
  std::string text = "a,b,c,d,e,f,y\n";
  std::uint32_t state = 1;
  for (int i = 0; i < rows; ++i) {
    bool found = false;
    for (int word = 0; word < 6; ++word) {
      state = state * 1664525U + 1013904223U;
      int index = static_cast<int>((state >> 16) % 30);
      if (i % 2 == 0 && word == (i / 2) % 5) index = 7;
      found = found || (index == 7 && word < 5);
      text += std::to_string(index) + ",";
    }
    text += found ? "yes\n" : "no\n";
  }
  return text;
}

constexpr std::string_view k_words = R"(version: 1
seed: 1
data:
  format: csv
  path: words.csv
  table: {target: y, standardize: false}
  test_split: 0.25
model:
  input: [6]
  layers:
    - {type: embedding, input_dim: 30, output_dim: 8, embeddings_initializer: {type: random_uniform, minval: -1, maxval: 1}}
    - {type: conv1d, filters: 8, kernel_size: 1, activation: relu}
    - {type: global_max_pooling1d}
    - {type: dense, units: 2}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 2e-2}
training: {epochs: 15, batch_size: 32}
)";

/// The training loss of the last epoch of a run of a shipped config on a few generated digits.
double learned_loss(const TemporaryDirectory& directory,
                    const std::string& config,
                    const std::string& name,
                    const std::vector<std::string>& more) {
  CAPTURE(name);
  std::vector<std::string> words{
      "train",
      config,
      "--run-dir",
      name,
      "--batch-size",
      "32",
      "--set",
      "data={name: synthetic_digits, train_samples: 512, test_samples: 64}"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished trained = halfstep(words, directory.path());
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  return report_of(directory, name).at("history").at("loss").back().get<double>();
}

/// Samples of five numbers below 12; the label of a position is the number before it, of position 0
/// where they are `windows` the last number of the sample before, else 0.
void write_echoes(const std::string& path, std::int64_t samples, bool windows = false) {
  Tensor x(DType::int32, {samples, 5});
  Tensor y(DType::int64, {samples, 5});
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    state = state * 1664525U + 1013904223U;
    x.as<std::int32_t>()[i] = static_cast<std::int32_t>((state >> 16) % 12);
    const bool first = windows ? i == 0 : i % 5 == 0;
    y.as<std::int64_t>()[i] = first ? 0 : x.as<std::int32_t>()[i - 1];
  }
  const data::NamedTensor arrays[] = {
      {"x_train", x.view()}, {"y_train", y.view()}, {"x_test", x.view()}, {"y_test", y.view()}};
  data::write_npz(path, arrays);
}

constexpr std::string_view k_echo = R"(version: 1
seed: 1
data: {format: npz, path: echo.npz}
model:
  input: [5]
  layers:
    - {type: embedding, input_dim: 12, output_dim: 16, embeddings_initializer: {type: random_uniform, minval: -1, maxval: 1}}
    - {type: conv1d, filters: 32, kernel_size: 3, padding: same, activation: relu}
    - {type: dense, units: 12}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 2e-2}
metrics: [accuracy, top_2_accuracy]
training: {epochs: 12, batch_size: 32}
)";

/// Windows of a sequence, whose labels follow from the window before too.
constexpr std::string_view k_windows = R"(version: 1
seed: 1
data: {format: npz, path: echo.npz, scale: 1, streams: true}
model:
  input: [5]
  layers:
    - {type: embedding, input_dim: 12, output_dim: 16, embeddings_initializer: {type: random_uniform, minval: -1, maxval: 1}}
    - {type: lstm, units: 32, return_sequences: true, stateful: true}
    - {type: dense, units: 12}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 2e-2}
training: {epochs: 30, batch_size: 16}
)";

}  // namespace

TEST_CASE("streams: training, evaluation and prediction go on from sample to sample") {
  const TemporaryDirectory directory;
  write_echoes(directory.file("echo.npz"), 300, true);
  write_text(directory.path() / "run.yaml", std::string(k_windows));
  const Finished trained = train(directory, "run");
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string left_out = "drops the last 12 of 300 training samples";
  CHECK(holds(trained.err, "warning: W119 run.yaml:3:56: data.streams: " + left_out));
  const Json report = report_of(directory, "run");
  CHECK(holds(report.at("warnings").dump(), left_out));
  // Without the sample before, a fifth of the labels is known by chance alone.
  CHECK(report.at("history").at("accuracy").back().get<double>() > 0.95);
  CHECK(report.at("test").at("accuracy").get<double>() > 0.95);

  const std::vector<std::string> eval{"eval", "run", "--json", "--predictions", "classes.npz"};
  const Json evaluated = Json::parse(halfstep(eval, directory.path()).out);
  CHECK(evaluated.at("samples") == 300);
  CHECK(evaluated.at("metrics").at("accuracy") == report.at("test").at("accuracy"));
  const Tensor classes = data::NpzReader(directory.file("classes.npz")).read("predictions");
  const Json predicted =
      Json::parse(halfstep({"predict", "run", "--json", "echo.npz"}, directory.path()).out);
  REQUIRE(predicted.at("predictions").size() == 300);
  for (std::int64_t i = 0; i < 300; ++i) {
    for (std::int64_t at = 0; at < 5; ++at) {
      REQUIRE(predicted.at("predictions")[static_cast<std::size_t>(i)].at(
                  "classes")[static_cast<std::size_t>(at)] ==
              classes.as<std::int64_t>()[5 * i + at]);
    }
  }

  // In batches that divide the samples.
  const Finished divided = train(directory, "divided", {"--batch-size", "20"});
  CHECK(divided.exit_code == 0);
  CHECK(!holds(divided.err, "W119"));
}

TEST_CASE("labels: a model of a class at each position learns, is evaluated and predicts") {
  const TemporaryDirectory directory;
  write_echoes(directory.file("echo.npz"), 300);
  write_text(directory.path() / "run.yaml", std::string(k_echo));
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    const Finished trained = train(directory, policy, {"--policy", policy});
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    CHECK(report_of(directory, policy).at("test").at("accuracy").get<double>() > 0.9);
  }
  const Finished rewritten = train(directory, "rewritten", {"--rewrite", "auto"});
  CHECK(rewritten.exit_code == 0);
  const Json evaluated = Json::parse(
      halfstep({"eval", "float32", "--json", "--predictions", "classes.npz"}, directory.path())
          .out);
  const Tensor predictions = data::NpzReader(directory.file("classes.npz")).read("predictions");
  const Tensor labels = data::NpzReader(directory.file("classes.npz")).read("labels");
  REQUIRE(predictions.elements() == 1500);
  CHECK(labels.shape() == Shape{300, 5});
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < 1500; ++i) {
    right += predictions.as<std::int64_t>()[i] == labels.as<std::int32_t>()[i] ? 1 : 0;
  }
  CHECK(evaluated.at("metrics").at("accuracy").get<double>() ==
        doctest::Approx(static_cast<double>(right) / 1500));

  const Json predicted =
      Json::parse(halfstep({"predict", "float32", "--json", "echo.npz"}, directory.path()).out);
  const Json& first = predicted.at("predictions")[0];
  REQUIRE(first.at("classes").size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(first.at("classes")[i] == predictions.as<std::int64_t>()[i]);
  }
  CHECK(halfstep({"config", "check", "run.yaml"}, directory.path()).exit_code == 0);
  CHECK(halfstep({"explain", "run.yaml"}, directory.path()).exit_code == 0);
  const Finished measured = halfstep(
      {"bench", "run.yaml", "--synthetic", "--steps", "3", "--warmup", "1"}, directory.path());
  CAPTURE(measured.err);
  CHECK(measured.exit_code == 0);
  const Finished pooled = train(directory, "pooled", {"--set", "model.layers[1].padding=valid"});
  CHECK(pooled.exit_code == 2);
  CHECK(holds(pooled.err, "class numbers of shape [5] need one score per class at each position"));
}

TEST_CASE("embedding: a model of words learns under each policy, and is measured and explained") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "words.csv", sentences(800));
  write_text(directory.path() / "run.yaml", std::string(k_words));
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    const Finished trained = train(directory, policy, {"--policy", policy});
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    CHECK(report_of(directory, policy).at("test").at("accuracy").get<double>() > 0.9);
  }
  const Finished rewritten = train(directory, "rewritten", {"--rewrite", "auto"});
  CHECK(rewritten.exit_code == 0);
  const Finished measured = halfstep(
      {"bench", "run.yaml", "--synthetic", "--steps", "3", "--warmup", "1"}, directory.path());
  CAPTURE(measured.err);
  CHECK(measured.exit_code == 0);
  const Finished explained = halfstep({"explain", "mixed_float16"}, directory.path());
  CAPTURE(explained.err);
  CHECK(explained.exit_code == 0);
  CHECK(holds(explained.out, "embedding"));

  const auto refused = [&](const std::vector<std::string>& settings) {
    const Finished end = train(directory, "refused", settings);
    CHECK(end.exit_code != 0);
    return end.err;
  };
  CHECK(
      holds(refused({"--set", "model.layers[0].input_dim=20"}), "is not a whole number in 0..19"));
  CHECK(holds(refused({"--set", "data.table.standardize=true"}), "is not a whole number in 0..29"));
  CHECK(holds(refused({"--set", "data.scale=0.5"}), "data.scale: 1 keeps them as they are"));
}

TEST_CASE("attention: the shipped Transformer learns under each policy and the rewrite") {
  const TemporaryDirectory directory;
  const std::string config = (source_dir() / "configs/transformer_patches.yaml").string();
  // Of guesses the loss would be -log(0.1) = 2.3.
  const auto learn = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(),
                {"--epochs", "10", "--set", "optimizer={type: adamw, learning_rate: 2e-3}"});
    const double loss = learned_loss(directory, config, name, more);
    CHECK(loss < 1.8);
    return loss;
  };
  const double reference = learn("float32", {});
  for (const std::string policy : {"mixed_bfloat16", "mixed_float16"}) {
    CHECK(learn(policy, {"--policy", policy}) == doctest::Approx(reference).epsilon(0.05));
  }
  CHECK(learn("rewrite", {"--rewrite", "auto"}) == doctest::Approx(reference).epsilon(0.05));
  // Four projections of 128 samples of 16 steps from 64 to 64 values; scores and sums of 4 heads
  // of 16.
  const Json summary = Json::parse(
      halfstep({"model", "summary", config, "--json", "--set", "data={name: synthetic_digits}"},
               directory.path())
          .out);
  CHECK(summary.at("layers").at(6).at("type") == "multi_head_attention");
  CHECK(summary.at("layers").at(6).at("forward_flops").get<double>() ==
        4 * (2.0 * 128 * 16 * 64 * 64) + 2 * (2.0 * 128 * 4 * 16 * 16 * 16));
  const Finished steps =
      halfstep({"config", "check", config, "--set", "model.nodes.positions.sequence_length=15"},
               directory.path());
  CHECK(steps.exit_code == 2);
  CHECK(holds(steps.err, "its input has 16 steps, sequence_length is 15"));
}

TEST_CASE("recurrent: the shipped LSTM learns under each policy and the rewrite, and GRUs do") {
  const TemporaryDirectory directory;
  const std::string config = (source_dir() / "configs/lstm_rows.yaml").string();
  const auto learn = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "6", "--set", "model.layers[0].units=48"});
    const double loss = learned_loss(directory, config, name, more);
    CHECK(loss < 1.9);
    return loss;
  };
  const double reference = learn("float32", {});
  for (const std::string policy : {"mixed_bfloat16", "mixed_float16"}) {
    CHECK(learn(policy, {"--policy", policy}) == doctest::Approx(reference).epsilon(0.05));
  }
  CHECK(learn("rewrite", {"--rewrite", "auto"}) == doctest::Approx(reference).epsilon(0.05));
  learn("gru", {"--policy", "mixed_bfloat16", "--set", "model.layers[0].type=gru"});

  const Finished explained = halfstep({"explain", "rewrite"}, directory.path());
  CAPTURE(explained.err);
  CHECK(explained.exit_code == 0);
  CHECK(holds(explained.out, "recurrent/rnn"));
  // On a GPU: one launch, and one that transposes the kernel for the gradient; for more samples the
  // 28 steps have two launches each, and the gradient of the initial state one more.
  const auto graph_nodes = [&](std::string_view samples) {
    const Finished end = halfstep({"explain",
                                   config,
                                   "--arch",
                                   "sm_90",
                                   "--json",
                                   "--batch-size",
                                   std::string(samples),
                                   "--set",
                                   "data={name: synthetic_digits}"},
                                  directory.path());
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    const Json report = Json::parse(end.out);
    std::map<std::string, int> nodes;
    for (const Json& launch : report.at("predicted_step").at("launches")) {
      nodes[launch.at("kernel")] += launch.at("graph_nodes").get<int>();
    }
    return nodes;
  };
  std::map<std::string, int> few = graph_nodes("128"), many = graph_nodes("512");
  CHECK(few["cuda/rnn"] == 1);
  CHECK(few["cuda/rnn_grad"] == 2);
  CHECK(many["cublaslt/rnn"] == 56);
  CHECK(many["cublaslt/rnn_grad"] == 57);
  // The projections of 128 samples of 28 steps, and their recurrent matmuls.
  const Json summary = Json::parse(
      halfstep({"model", "summary", config, "--json", "--set", "data={name: synthetic_digits}"},
               directory.path())
          .out);
  CHECK(summary.at("layers").at(0).at("type") == "lstm");
  CHECK(summary.at("layers").at(0).at("forward_flops").get<double>() ==
        2.0 * 128 * 28 * 28 * 512 + 2.0 * 128 * 28 * 128 * 512);
}

}  // namespace halfstep::test
