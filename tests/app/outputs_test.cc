// A model of several outputs from an archive to predictions.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/mpirun.h"
#include "app/small_run.h"
#include "core/tensor.h"
#include "data/tensor_files.h"

namespace halfstep::test {
namespace {

constexpr std::string_view k_two_outputs = R"(version: 1
name: two
seed: 1
data: {format: npz, path: two.npz, validation_split: 0.25}
model:
  inputs: {image: [4, 4, 1], row: [3]}
  nodes:
    flat: {type: flatten, from: image}
    both: {type: concatenate, from: [flat, row]}
    hidden: {type: dense, units: 16, activation: relu, from: both}
    bright: {type: dense, units: 2, activation: softmax, dtype: float32, from: hidden}
    mean: {type: dense, units: 1, dtype: float32, from: hidden}
  outputs: [bright, mean]
loss: {bright: sparse_categorical_crossentropy, mean: mean_squared_error}
loss_weights: {mean: 2}
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 20, batch_size: 16}
)";

/// Pictures that are bright or dark, their means, and three numbers without meaning.
struct LabelledPictures {
  Tensor image, row, bright, mean;

  explicit LabelledPictures(std::int64_t count)
      : image(DType::float32, {count, 4, 4}),
        row(DType::float32, {count, 3}),
        bright(DType::int64, {count}),
        mean(DType::float32, {count}) {
    for (std::int64_t i = 0; i < count; ++i) {
      bright.as<std::int64_t>()[i] = i % 2;
      const float level = static_cast<float>(i % 2) + static_cast<float>(i % 7) / 16;
      for (std::int64_t k = 0; k < 16; ++k) image.as<float>()[i * 16 + k] = level;
      for (std::int64_t k = 0; k < 3; ++k) {
        row.as<float>()[i * 3 + k] = static_cast<float>((i + k) % 3) / 4;
      }
      mean.as<float>()[i] = level;
    }
  }
};

void write_pictures(const std::string& path) {
  const LabelledPictures train(128), test(40);
  const std::array arrays{data::NamedTensor{"x_train_image", train.image.view()},
                          data::NamedTensor{"x_train_row", train.row.view()},
                          data::NamedTensor{"y_train_bright", train.bright.view()},
                          data::NamedTensor{"y_train_mean", train.mean.view()},
                          data::NamedTensor{"x_test_image", test.image.view()},
                          data::NamedTensor{"x_test_row", test.row.view()},
                          data::NamedTensor{"y_test_bright", test.bright.view()},
                          data::NamedTensor{"y_test_mean", test.mean.view()}};
  data::write_npz(path, arrays);
}

Finished with_one_thread(const TemporaryDirectory& directory, std::vector<std::string> words) {
  words.insert(words.end(), {"--threads", "1"});
  return halfstep(words, directory.path());
}

}  // namespace

TEST_CASE("outputs: a model of a class and a number trains, and its run is used by every command") {
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"), std::string(k_two_outputs));
  write_pictures(directory.file("two.npz"));
  const Finished trained =
      train(directory,
            "run",
            {"--set", "training.early_stopping={monitor: val_bright_accuracy, patience: 50}"});
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Json report = report_of(directory, "run");
  CHECK(report.at("test").at("bright_accuracy").get<double>() == 1);
  CHECK(report.at("test").at("mean_mean_absolute_error").get<double>() < 0.2);
  CHECK(report.at("test_classes").is_null());
  CHECK(report.at("test_outputs").at(0).at("classes").at("confusion") ==
        Json::array({Json::array({20, 0}), Json::array({0, 20})}));
  CHECK(report.at("test_outputs").at(1).at("classes").is_null());

  const Finished evaluated =
      with_one_thread(directory, {"eval", "run", "--json", "--predictions", "out.npz"});
  REQUIRE(evaluated.exit_code == 0);
  CHECK(Json::parse(evaluated.out).at("metrics") == report.at("test"));
  const data::NpzReader predictions(directory.file("out.npz"));
  CHECK(predictions.names() ==
        std::vector<std::string>{"predictions_bright", "labels_bright", "labels_mean"});
  CHECK(predictions.read("labels_bright").dtype() == DType::int32);
  write_text(directory.file("eval.json"), evaluated.out);

  const Finished info = with_one_thread(directory, {"data", "info", "run.yaml"});
  CHECK(info.exit_code != 0);  // --threads is not for it
  const std::string described = halfstep({"data", "info", "run.yaml"}, directory.path()).out;
  CAPTURE(described);
  CHECK(holds(described, "labels of 2 outputs"));
  CHECK(holds(described, "output bright"));
  CHECK(holds(described,
              "sample 1: image 1.062 1.062 1.062 1.062 1.062 1.062 1.062 1.062 ...  row "
              "0.25 0.5 0  label bright 1  mean 1.062"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", "run.yaml"},
        {"explain", "run"},
        {"bench", "run.yaml", "--steps", "2"},
        {"compare", "run.yaml", "--seeds", "2", "--max-steps", "3"},
        {"config", "check", "run.yaml"},
        {"model", "summary", "run.yaml"},
        {"model", "export", "run", "--to", "weights.npz"}}) {
    const Finished end = with_one_thread(directory, words);
    CAPTURE(words[0]);
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"report", "validate", "run/report.json"},
        {"report", "validate", "eval.json"},
        {"report", "show", "run"}}) {
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
  }

  const LabelledPictures asked(4);
  data::write_npz(directory.file("asked.npz"),
                  std::array{data::NamedTensor{"image", asked.image.view()},
                             data::NamedTensor{"row", asked.row.view()}});
  const Finished printed = with_one_thread(directory, {"predict", "run", "asked.npz"});
  CHECK(holds(printed.out, "     1  bright class   1"));
  const Json each =
      Json::parse(with_one_thread(directory, {"predict", "run", "asked.npz", "--json"}).out)
          .at("predictions");
  REQUIRE(each.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(each.at(i).at("outputs").at(0).at("class") == i % 2);
    CHECK(each.at(i).at("outputs").at(1).at("output") == "mean");
    CHECK(each.at(i).at("outputs").at(1).at("values").size() == 1);
  }
}

TEST_CASE("outputs: each may have names of its classes, which every command shows") {
  const TemporaryDirectory directory;
  std::string config(k_two_outputs);
  config.replace(config.find("validation_split: 0.25"),
                 22,
                 "validation_split: 0.25, class_names: {bright: [dark, light]}");
  write_text(directory.file("run.yaml"), config);
  write_pictures(directory.file("two.npz"));
  const Finished trained = train(directory, "run");
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Json report = report_of(directory, "run");
  CHECK(report.at("test_outputs").at(0).at("classes").at("per_class").at(1).at("name") == "light");
  CHECK(holds(with_one_thread(directory, {"eval", "run"}).out, "\nlight "));
  const Finished printed = with_one_thread(directory, {"predict", "run", "two.npz"});
  CHECK(holds(printed.out, "     1  bright class   1  light  "));
  const std::string names = "data.class_names={bright: [low, high]}";
  CHECK(holds(with_one_thread(directory, {"predict", "run", "two.npz", "--set", names}).out,
              "     1  bright class   1  high  "));
  const std::string described = halfstep({"data", "info", "run.yaml"}, directory.path()).out;
  CHECK(holds(described, "output bright            2 classes: dark, light"));
  CHECK(holds(described, "label bright light  mean 1.062"));
  const std::string of_file =
      halfstep({"data", "info", "two.npz", "--format", "npz"}, directory.path()).out;
  CHECK(holds(of_file,
              "a config takes them with model.inputs: {image: [4, 4], row: [3]} and "
              "model.outputs: [bright, mean]"));

  struct Row {
    std::string_view names, said;
  };
  for (const Row& row :
       {Row{"[dark, light]", "names the classes of one output, and the model has several"},
        Row{"{brigt: [dark, light]}", "the model has no output 'brigt'"},
        Row{"{bright: [dark]}", "output 'bright' has 2 classes"},
        Row{"{bright: [a, b, c]}", "has 3 names, but the model has 2 classes"},
        Row{"{bright: [a, a]}", "data.class_names.bright[1]: error: 'a' is the name of class 0"},
        Row{"{mean: [a]}", "output 'mean': names classes, but the targets of its loss are real"}}) {
    const Finished end =
        train(directory, "refused", {"--set", fmt::format("data.class_names={}", row.names)});
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, row.said));
  }
}

TEST_CASE("outputs: one without a loss is computed by every command, and may have no labels") {
  const TemporaryDirectory directory;
  std::string config(k_two_outputs);
  config.replace(config.find("mean: mean_squared_error"), 24, "mean: null");
  config.erase(config.find("loss_weights"), 24);
  write_text(directory.file("run.yaml"), config);
  const LabelledPictures train(128), test(40);
  data::write_npz(directory.file("two.npz"),
                  std::array{data::NamedTensor{"x_train_image", train.image.view()},
                             data::NamedTensor{"x_train_row", train.row.view()},
                             data::NamedTensor{"y_train_bright", train.bright.view()},
                             data::NamedTensor{"x_test_image", test.image.view()},
                             data::NamedTensor{"x_test_row", test.row.view()},
                             data::NamedTensor{"y_test_bright", test.bright.view()}});
  const Finished trained = halfstep::test::train(directory, "run");
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK(holds(trained.err, "no gradient of the loss reaches 'mean/kernel'"));
  const Json report = report_of(directory, "run");
  CHECK(report.at("test").size() == 3);
  CHECK(report.at("config").at("resolved").at("loss").at("mean").is_null());
  const Finished evaluated =
      with_one_thread(directory, {"eval", "run", "--predictions", "out.npz"});
  CAPTURE(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(data::NpzReader(directory.file("out.npz")).names() ==
        std::vector<std::string>{"predictions_bright", "labels_bright"});
  CHECK(holds(halfstep({"data", "info", "run.yaml"}, directory.path()).out,
              "output mean              no labels, as it has neither a loss nor metrics"));
  const LabelledPictures asked(4);
  data::write_npz(directory.file("asked.npz"),
                  std::array{data::NamedTensor{"image", asked.image.view()},
                             data::NamedTensor{"row", asked.row.view()}});
  const Finished printed = with_one_thread(directory, {"predict", "run", "asked.npz"});
  CHECK(holds(printed.out, "     1  bright class   1"));
  CHECK(holds(printed.out, "  mean value "));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"explain", "run"},
                                                {"explain", "run.yaml"},
                                                {"bench", "run.yaml", "--steps", "2"},
                                                {"config", "check", "run.yaml"},
                                                {"model", "summary", "run"}}) {
    const Finished end = with_one_thread(directory, words);
    CAPTURE(words[0]);
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
  }
  CHECK(halfstep({"report", "validate", "run/report.json"}, directory.path()).exit_code == 0);

  struct Row {
    std::string_view setting, message;
  };
  for (const Row& row :
       {Row{"loss={bright: null, mean: null}",
            "no output has a loss, so there is nothing to train"},
        Row{"loss={bright: sparse_categorical_crossentropy}",
            "has no loss of the output 'mean' (mean: null computes it without one)"},
        Row{"loss_weights={mean: 2}", "weighs the loss of the output 'mean', which has none"},
        Row{"metrics=[mean_loss]", "there is no mean_loss: the output has no loss"},
        Row{"metrics={mean: auc}", "takes probabilities, and the output has no softmax or sigmoid"},
        Row{"metrics={mean: mean_absolute_error}",
            "has no array y_train_mean for the labels of the output 'mean'"},
        Row{"training.early_stopping={monitor: mean_loss}", "no epoch has a metric 'mean_loss'"},
        Row{"training.class_weight={1: 2}",
            "weights classes, which needs a model with one output; this one has 2"}}) {
    CAPTURE(row.setting);
    const Finished end =
        with_one_thread(directory, {"train", "run.yaml", "--set", std::string(row.setting)});
    CAPTURE(end.err);
    CHECK(end.exit_code != 0);
    CHECK(holds(end.err, row.message));
  }
}

TEST_CASE("outputs: two ranks of mpirun report the metrics of all samples") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"), std::string(k_two_outputs));
  write_pictures(directory.file("two.npz"));
  REQUIRE(train(directory, "one").exit_code == 0);
  const Finished end = train_ranks(directory, 2, "two");
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json one = report_of(directory, "one"), two = report_of(directory, "two");
  for (const auto& [name, value] : one.at("test").items()) {
    CAPTURE(name);
    CHECK(two.at("test").at(name).get<double>() ==
          doctest::Approx(value.get<double>()).epsilon(1e-3));
  }
  CHECK(two.at("test_outputs") == one.at("test_outputs"));
}

TEST_CASE("outputs: labels that do not fit the outputs are refused, all at once") {
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"), std::string(k_two_outputs));
  write_pictures(directory.file("two.npz"));
  const LabelledPictures few(16);
  Tensor large(DType::int64, {16});
  std::fill_n(large.as<std::int64_t>(), 16, 2);
  const auto with_labels = [&](const char* file, std::vector<data::NamedTensor> labels) {
    labels.push_back({"x_train_image", few.image.view()});
    labels.push_back({"x_train_row", few.row.view()});
    data::write_npz(directory.file(file), labels);
  };
  with_labels("none.npz", {{"y_train_brigth", few.bright.view()}, {"y_train", few.mean.view()}});
  with_labels("large.npz", {{"y_train_bright", large.view()}, {"y_train_mean", few.mean.view()}});
  with_labels("float.npz", {{"y_train_bright", few.mean.view()}, {"y_train_mean", few.row.view()}});
  const LabelledPictures more(20);
  with_labels("more.npz",
              {{"y_train_bright", more.bright.view()}, {"y_train_mean", more.mean.view()}});
  with_labels("mixed.npz",
              {{"y_train_bright", few.bright.view()}, {"y_train_mean", more.mean.view()}});
  struct Case {
    std::string setting;
    int exit_code;
    std::vector<std::string_view> messages;
  };
  const std::vector<Case> cases{
      {"data.path=none.npz",
       3,
       {"has no array y_train_bright for the labels of the output 'bright'; it has",
        "did you mean 'y_train_brigth'?",
        "has no array y_train_mean for the labels of the output 'mean'"}},
      {"data.path=large.npz",
       3,
       {"output 'bright': training samples, for a model whose output is [2]: value 2 of sample 0 "
        "is "
        "not a whole number in 0..1"}},
      {"data.path=float.npz",
       2,
       {"run.yaml:14:16: loss.bright: error: output 'bright': takes class numbers; the labels are "
        "float32",
        "run.yaml:14:55: loss.mean: error: output 'mean': the labels are float targets of shape "
        "[3], the model's output is [1]"}},
      {"data.path=more.npz", 3, {"has 16 images but 20 labels"}},
      {"data.path=mixed.npz",
       3,
       {"the array y_train_mean has 20 labels, but y_train_bright has 16"}},
      {"data={name: mnist}",
       2,
       {"2 outputs are the arrays of a file of data.format: npz, which this config does not name"}},
  };
  for (const Case& c : cases) {
    const Finished end = with_one_thread(
        directory, {"train", "run.yaml", "--set", "data.validation_split=0", "--set", c.setting});
    CAPTURE(end.err);
    CHECK(end.exit_code == c.exit_code);
    for (const std::string_view message : c.messages) CHECK(holds(end.err, message));
  }
}

}  // namespace halfstep::test
