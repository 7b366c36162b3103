// eval, predict, model export and explain need a run's directory and nothing else.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/small_run.h"
#include "core/tensor.h"
#include "data/tensor_files.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t k_side = 6;
constexpr std::int64_t k_samples = 64;

/// Colour pictures, channels first or last, whose label is the brightest channel.
void write_pictures(const std::string& path, bool channels_first) {
  const Shape shape =
      channels_first ? Shape{k_samples, 3, k_side, k_side} : Shape{k_samples, k_side, k_side, 3};
  Tensor images(DType::uint8, shape);
  Tensor labels(DType::int32, {k_samples});
  for (std::int64_t n = 0; n < k_samples; ++n) {
    labels.as<std::int32_t>()[n] = static_cast<std::int32_t>(n % 3);
    for (std::int64_t pixel = 0; pixel < k_side * k_side; ++pixel) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const std::int64_t at = channels_first ? (n * 3 + c) * k_side * k_side + pixel
                                               : (n * k_side * k_side + pixel) * 3 + c;
        images.as<std::uint8_t>()[at] =
            static_cast<std::uint8_t>((c == n % 3 ? 180 : 20) + (n * 7 + pixel * 3 + c) % 60);
      }
    }
  }
  data::write_npz(path,
                  std::array{data::NamedTensor{"x_train", images.view()},
                             data::NamedTensor{"y_train", labels.view()},
                             data::NamedTensor{"x_test", images.view()},
                             data::NamedTensor{"y_test", labels.view()}});
}

std::string picture_config(const std::string& layers, const std::string& data) {
  return "name: pictures\nseed: 3\ndata: " + data +
         "\nmodel:\n  input: [6, 6, 3]\n  layers: " + layers +
         "\nloss: sparse_categorical_crossentropy\noptimizer: {type: adam, learning_rate: 0.01}\n"
         "training: {epochs: 2, batch_size: 16}\n";
}

const std::string k_layers =
    "[{type: conv2d, filters: 4, kernel_size: 3, name: conv}, {type: flatten}, "
    "{type: dense, units: 3, name: logits}, {type: softmax, name: probabilities}]";

Finished run(const TemporaryDirectory& directory, std::vector<std::string> words) {
  words.insert(words.end(), {"--threads", "1"});
  return halfstep(words, directory.path());
}

/// Trains on pictures and takes away the config and the data.
void train_and_forget(const TemporaryDirectory& directory) {
  write_pictures(directory.file("a.npz"), true);
  write_text(directory.file("c.yaml"), picture_config(k_layers, "{format: npz, path: a.npz}"));
  const Finished end = run(directory, {"train", "c.yaml", "--run-dir", "run"});
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  fs::remove(directory.file("c.yaml"));
  fs::rename(directory.file("a.npz"), directory.file("elsewhere.npz"));
}

/// The checkpoint of the most steps.
std::string newest(const std::string& checkpoints) {
  std::string last;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    last = std::max(last, entry.path().string());
  }
  return last;
}

}  // namespace

TEST_CASE("run: predict, export, summary and explain work from its directory alone") {
  const TemporaryDirectory directory;
  train_and_forget(directory);

  fs::create_directory(directory.file("pictures"));
  for (const auto& [name, colour] : {std::pair("b.ppm", 0), std::pair("a.ppm", 2)}) {
    std::string pixels(k_side * k_side * 3, '\x20');
    for (std::size_t i = static_cast<std::size_t>(colour); i < pixels.size(); i += 3) {
      pixels[i] = '\xC0';
    }
    write_text(directory.file(std::string("pictures/") + name), "P6\n6 6\n255\n" + pixels);
  }
  write_text(directory.file("pictures/notes.txt"), "no picture");
  const Finished folder = run(directory, {"predict", "run", "pictures", "--json"});
  CAPTURE(folder.err);
  REQUIRE(folder.exit_code == 0);
  const Json predictions = Json::parse(folder.out).at("predictions");
  REQUIRE(predictions.size() == 2);
  CHECK(predictions.at(0).at("file") == "pictures/a.ppm");
  CHECK(predictions.at(0).at("class") == 2);
  CHECK(predictions.at(1).at("class") == 0);
  const Finished two = run(directory, {"predict", "run", "pictures/b.ppm", "pictures/a.ppm"});
  REQUIRE(two.exit_code == 0);
  CHECK(holds(two.out, "pictures/a.ppm"));

  // Channels first, as the run's own samples were.
  const Finished array = run(directory, {"predict", "run", "elsewhere.npz", "--json"});
  CAPTURE(array.err);
  REQUIRE(array.exit_code == 0);
  CHECK(Json::parse(array.out).at("predictions").size() == k_samples);

  const Finished exported = run(directory, {"model", "export", "run", "--to", "w.npz", "--json"});
  CAPTURE(exported.err);
  REQUIRE(exported.exit_code == 0);
  CHECK(Json::parse(exported.out).at("tensors") == 4);
  CHECK(data::NpzReader(directory.file("w.npz")).contains("conv/kernel"));

  const Finished summary = run(directory, {"model", "summary", "run", "--json"});
  REQUIRE(summary.exit_code == 0);
  const Finished explained =
      run(directory, {"explain", "run", "--policy", "mixed_bfloat16", "--json"});
  CAPTURE(explained.err);
  REQUIRE(explained.exit_code == 0);
  CHECK(Json::parse(explained.out).at("policy") == "mixed_bfloat16");
}

TEST_CASE("run: eval takes its config and data from its directory, from anywhere") {
  const TemporaryDirectory directory;
  train_and_forget(directory);
  fs::rename(directory.file("elsewhere.npz"), directory.file("a.npz"));
  fs::create_directory(directory.file("other"));
  for (const std::string& words : {std::string("../run"), std::string("../run/checkpoints")}) {
    const std::string path = words == "../run" ? words : newest(directory.file("run/checkpoints"));
    const Finished end =
        halfstep({"eval", path, "--json", "--threads", "1"}, directory.file("other"));
    CAPTURE(path);
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    CHECK(Json::parse(end.out).at("metrics").at("accuracy") ==
          report_of(directory, "run").at("test").at("accuracy"));
  }
}

TEST_CASE("run: reports on it go into a folder, which is made, and are found there") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "runs/small/a").exit_code == 0);
  const auto shown = [&](const std::string& folder) {
    const Finished end =
        halfstep({"report", "export", folder, "--format", "json"}, directory.path());
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    return Json::parse(end.out).at("kind").get<std::string>();
  };
  for (const std::string command : {"eval", "explain"}) {
    for (const std::string& folder :
         {"new/" + command, std::string("new/both"), std::string("runs/small/a")}) {
      const Finished end = run(directory, {command, "runs/small/a", "--run-dir", folder});
      CAPTURE(end.err);
      CHECK(end.exit_code == 0);
    }
    CHECK(shown("new/" + command) == command);
  }
  CHECK(shown("runs/small/a") == "train");
  const Finished both = halfstep({"report", "show", "new/both"}, directory.path());
  CHECK(both.exit_code == 3);
  CHECK(both.err == "new/both: error: name one of eval.json and explain.json\n");
  // They are the run's own files.
  CHECK(halfstep({"runs", "prune", "--keep", "0", "--yes"}, directory.path()).exit_code == 0);
  CHECK_FALSE(fs::exists(directory.file("runs/small/a")));
}

TEST_CASE("run: eval of a folder that does not belong to a run says so") {
  const TemporaryDirectory directory;
  fs::create_directory(directory.file("other"));
  const Finished none = run(directory, {"eval", "other"});
  CHECK(none.exit_code == 3);
  CHECK(holds(none.err, "does not belong to a run"));
  CHECK(run(directory, {"eval"}).exit_code == 2);
}

TEST_CASE("run: eval and predict warn of weights that are not finite") {
  const TemporaryDirectory directory;
  write_pictures(directory.file("a.npz"), false);
  write_text(directory.file("c.yaml"),
             picture_config("[{type: flatten}, {type: dense, units: 3}, {type: softmax}]",
                            "{format: npz, path: a.npz}"));
  run(directory,
      {"train",
       "c.yaml",
       "--run-dir",
       "run",
       "--max-steps",
       "1",
       "--set",
       "optimizer.learning_rate=1e38"});
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"eval", "run"},
        std::vector<std::string>{"predict", "run", "a.npz"}}) {
    const Finished end = run(directory, words);
    CAPTURE(end.err);
    CHECK(end.err.find("warning: W306") != std::string::npos);
  }
}

TEST_CASE("run: eval of a split that the data does not have names those that it has") {
  const TemporaryDirectory directory;
  const Tensor x(DType::float32, {20, 4}), y(DType::int32, {20});
  std::fill_n(x.as<float>(), 80, 0.5F);
  std::fill_n(y.as<std::int32_t>(), 20, 1);
  const std::array<data::NamedTensor, 2> arrays{{{"x_train", x.view()}, {"y_train", y.view()}}};
  data::write_npz(directory.file("data.npz"), arrays);
  write_text(
      directory.file("run.yaml"),
      "data: {format: npz, path: data.npz}\nmodel: {input: [4], layers: [{type: dense, units: "
      "2, activation: softmax}]}\nloss: sparse_categorical_crossentropy\noptimizer: sgd\n");
  for (const auto& [split, hint] : {std::pair("0", "use --split train"),
                                    std::pair("0.5", "--split train or --split validation")}) {
    const std::string name = std::string("run") + split;
    REQUIRE(run(directory,
                {"train",
                 "run.yaml",
                 "--run-dir",
                 name,
                 "--set",
                 std::string("data.validation_split=") + split,
                 "--batch-size",
                 "5"})
                .exit_code == 0);
    const Finished end = run(directory, {"eval", name});
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, "--split: error: the data has no test split"));
    CHECK(holds(end.err, hint));
    CHECK(run(directory, {"eval", name, "--split", "train"}).exit_code == 0);
  }
}

TEST_CASE("run: a config that describes another model is refused by the names of its keys") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--policy", "mixed_bfloat16"}).exit_code == 0);
  const auto eval = [&](const SmallRun& given, std::vector<std::string> more = {}) {
    write_config(directory, given);
    std::vector<std::string> words{"eval", "run.yaml", "--checkpoint", "run"};
    words.insert(words.end(), more.begin(), more.end());
    return run(directory, words);
  };
  SmallRun other;
  other.layers = "\n    - {type: dense, units: 10, name: hidden}\n";
  const Finished model = eval(other);
  CAPTURE(model.err);
  CHECK(model.exit_code == 2);
  CHECK(holds(model.err, "model.layers[0].units: error: is 10, but the run run has 16"));

  SmallRun scaled;
  scaled.data = "{name: synthetic_digits, train_samples: 512, test_samples: 128, scale: 2}";
  const Finished scale = eval(scaled);
  CHECK(scale.exit_code == 2);
  CHECK(holds(scale.err, "data.scale: error: is 2, but the run run has null"));

  const Finished policy = eval({});
  CAPTURE(policy.err);
  CHECK(policy.exit_code == 0);
  CHECK(holds(policy.err, "W115"));
  CHECK(holds(policy.err, "is float32, but the run run had mixed_bfloat16"));
  const Finished meant = eval({}, {"--policy", "float32"});
  CHECK(meant.exit_code == 0);
  CHECK(!holds(meant.err, "W115"));
  const Finished set = run(directory, {"eval", "run", "--set", "data.scale=2"});
  CHECK(set.exit_code == 2);
  CHECK(holds(set.err, "data.scale"));
}

TEST_CASE("run: a regression predicts values, and is not judged by accuracy") {
  const TemporaryDirectory directory;
  Tensor x(DType::float32, {64, 4});
  Tensor y(DType::float32, {64});
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t k = 0; k < 4; ++k) {
      x.as<float>()[i * 4 + k] = static_cast<float>((i * 5 + k * 3) % 8) / 8;
    }
    y.as<float>()[i] = -6 + x.as<float>()[i * 4];
  }
  data::write_npz(directory.file("a.npz"),
                  std::array{data::NamedTensor{"x_train", x.view()},
                             data::NamedTensor{"y_train", y.view()},
                             data::NamedTensor{"x_test", x.view()},
                             data::NamedTensor{"y_test", y.view()}});
  write_text(directory.file("c.yaml"),
             "data: {format: npz, path: a.npz}\nmodel: {input: [4], layers: [{type: dense, units: "
             "1}]}\nloss: mean_squared_error\noptimizer: {type: sgd, learning_rate: 0.1}\n"
             "training: {epochs: 8, batch_size: 16}\n");
  REQUIRE(run(directory, {"train", "c.yaml", "--run-dir", "run"}).exit_code == 0);
  const Finished eval = run(directory, {"eval", "run"});
  CAPTURE(eval.err);
  REQUIRE(eval.exit_code == 0);
  CHECK(holds(eval.out, "mean_absolute_error"));
  CHECK(!holds(eval.out, "accuracy"));
  const Finished predict = run(directory, {"predict", "run", "a.npz"});
  CAPTURE(predict.err);
  REQUIRE(predict.exit_code == 0);
  CHECK(holds(predict.out, "value -"));
  CHECK(!holds(predict.out, "class"));
  CHECK(!holds(predict.out, "probability"));
  const Json first = Json::parse(run(directory, {"predict", "run", "a.npz", "--json"}).out)
                         .at("predictions")
                         .at(0);
  CHECK(first.at("values").size() == 1);
  CHECK(!first.contains("class"));
}

TEST_CASE("run: one output of an event is the probability of class 1") {
  const TemporaryDirectory directory;
  Tensor x(DType::float32, {32, 2});
  Tensor y(DType::int32, {32});
  for (std::int64_t i = 0; i < 32; ++i) {
    y.as<std::int32_t>()[i] = static_cast<std::int32_t>(i % 2);
    x.as<float>()[i * 2] = i % 2 == 1 ? 1.0F : -1.0F;
  }
  data::write_npz(
      directory.file("a.npz"),
      std::array{data::NamedTensor{"x_train", x.view()}, data::NamedTensor{"y_train", y.view()}});
  for (const std::string activation : {"sigmoid", "linear"}) {
    CAPTURE(activation);
    const std::string loss = activation == "linear"
                                 ? "{type: binary_crossentropy, from_logits: true}"
                                 : "binary_crossentropy";
    write_text(directory.file("c.yaml"),
               "data: {format: npz, path: a.npz}\nmodel: {input: [2], layers: [{type: dense, "
               "units: 1, activation: " +
                   activation + "}]}\nloss: " + loss +
                   "\noptimizer: {type: sgd, learning_rate: 1}\n"
                   "training: {epochs: 20, batch_size: 16}\n");
    REQUIRE(run(directory, {"train", "c.yaml", "--run-dir", activation}).exit_code == 0);
    data::write_npz(directory.file("x.npz"), std::array{data::NamedTensor{"x", x.view()}});
    const Finished end = run(directory, {"predict", activation, "x.npz", "--json"});
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    const Json predictions = Json::parse(end.out).at("predictions");
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(predictions.at(i).at("class") == i);
      CHECK(predictions.at(i).at("probability").get<double>() > 0.5);
      CHECK(predictions.at(i).at("probabilities").size() == 2);
    }
    const Finished evaluated = run(directory, {"eval", activation, "--split", "train", "--json"});
    CAPTURE(evaluated.err);
    REQUIRE(evaluated.exit_code == 0);
    const Json confusion = Json::parse(evaluated.out).at("classes").at("confusion");
    CHECK(confusion == Json::parse("[[16, 0], [0, 16]]"));
  }
}

TEST_CASE("layout: samples stored channels first train like the same stored channels last") {
  const TemporaryDirectory directory;
  std::array<std::string, 2> hashes;
  for (const bool first : {true, false}) {
    CAPTURE(first);
    const std::string name = first ? "first" : "last";
    write_pictures(directory.file(name + ".npz"), first);
    write_text(directory.file("c.yaml"),
               picture_config(k_layers, "{format: npz, path: " + name + ".npz}"));
    const Finished end = run(directory, {"train", "c.yaml", "--run-dir", name});
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    hashes[first ? 0 : 1] = final_hash(directory, name);
  }
  CHECK(hashes[0] == hashes[1]);
  const Finished info =
      halfstep({"data", "info", "first.npz", "--format", "npz"}, directory.path());
  CHECK(holds(info.out, "stored as nchw"));

  // Where the shapes do not fit, the message has those of the file and of the model.
  const auto refused = [&](const std::vector<std::string>& settings, std::string_view said) {
    std::vector<std::string> words{"train", "c.yaml", "--set", "data.path=first.npz"};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    const Finished wrong = run(directory, words);
    CAPTURE(wrong.err);
    CHECK(wrong.exit_code == 2);
    CHECK(holds(wrong.err, said));
  };
  refused({"data.layout=nhwc"},
          "samples of shape [3, 6, 6] (stored as [3, 6, 6], read as nhwc), the model takes [6, 6, "
          "3]");
  refused({"data.layout=nchw", "model.input=[6, 7, 3]"},
          "samples of shape [6, 6, 3] (stored as [3, 6, 6], read as nchw), the model takes [6, 7, "
          "3]");
  refused({"model.input=[6, 7, 3]"}, "samples of shape [3, 6, 6], the model takes [6, 7, 3]");
}

}  // namespace halfstep::test
