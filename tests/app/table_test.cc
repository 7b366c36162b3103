// A table from training to predictions of rows without labels.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

/// Fruit: apples are light and red or green, melons heavy and green.
std::string fruit(int rows, bool labels) {
  std::string text = labels ? "weight,colour,kind\n" : "colour,weight\n";
  for (int i = 0; i < rows; ++i) {
    const bool melon = i % 2 == 1;
    const std::string weight = std::to_string(melon ? 1500 + 7 * i : 120 + i % 40);
    const std::string colour = melon || i % 4 == 0 ? "green" : "red";
    text += labels ? weight + "," + colour + (melon ? ",melon\n" : ",apple\n")
                   : colour + "," + weight + "\n";
  }
  return text;
}

constexpr std::string_view k_config = R"(version: 1
seed: 3
data: {format: csv, path: fruit.csv, table: {target: kind}, test_split: 0.25, validation_split: 0.2}
model: {input: [3], layers: [{type: dense, units: 2}, {type: softmax, dtype: float32}]}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 0.1}
training: {epochs: 10, batch_size: 8}
)";

}  // namespace

TEST_CASE("table: a run keeps its encoding, evaluates by it and predicts rows without labels") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "fruit.csv", fruit(160, true));
  write_text(directory.path() / "run.yaml", std::string(k_config));
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    const Finished trained = train(directory, policy, {"--policy", policy});
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    CHECK(report_of(directory, policy).at("test").at("accuracy") == 1);
  }
  CHECK(report_of(directory, "float32").at("test_classes").at("per_class")[1].at("name") ==
        "melon");

  // Rows without labels, and with the columns in another order.
  write_text(directory.path() / "new.csv", fruit(4, false));
  const Finished predicted = halfstep({"predict", "float32", "new.csv"}, directory.path());
  CAPTURE(predicted.err);
  CHECK(predicted.exit_code == 0);
  CHECK(predicted.out.starts_with("     0  class   0  apple "));
  CHECK(holds(predicted.out, "\n     3  class   1  melon "));
  const Finished folder = halfstep({"predict", "float32", "."}, directory.path());
  CHECK(folder.exit_code == 3);
  CHECK(holds(folder.err, ".: error: is a folder; a file was expected"));

  // The statistics are those of the training, whatever another file holds.
  std::string heavy = "weight,colour,kind\n";
  for (int i = 0; i < 40; ++i) heavy += "1500,green,melon\n1600,green,melon\n";
  write_text(directory.path() / "heavy.csv", heavy);
  const Finished evaluated = halfstep(
      {"eval", "float32", "--set", "data.path=" + directory.file("heavy.csv")}, directory.path());
  CAPTURE(evaluated.err);
  CAPTURE(evaluated.out);
  CHECK(evaluated.exit_code == 0);
  CHECK(holds(evaluated.out, "accuracy     1.0000"));

  write_text(directory.path() / "blue.csv", "weight,colour\n100,blue\n");
  const Finished unknown = halfstep({"predict", "float32", "blue.csv"}, directory.path());
  CHECK(unknown.exit_code == 3);
  CHECK(
      holds(unknown.err, "blue.csv:2: error: 'blue' in the column 'colour' is in no training row"));
  write_text(directory.path() / "gap.csv", "weight,colour\n,red\n");
  const Finished gap = halfstep({"predict", "float32", "gap.csv"}, directory.path());
  CHECK(gap.exit_code == 3);
  CHECK(holds(gap.err, "gap.csv:2: error: there is no value in the column 'weight'"));

  // A run goes on where it was stopped.
  REQUIRE(train(directory, "half", {"--epochs", "5"}).exit_code == 0);
  REQUIRE(train(directory, "half", {"--resume", "auto", "--epochs", "10"}).exit_code == 0);
  CHECK(final_hash(directory, "half") == final_hash(directory, "float32"));
}

TEST_CASE("table: classes are weighed by the values of the target, and one is ignored") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "fruit.csv", fruit(160, true));
  write_text(directory.path() / "run.yaml", std::string(k_config));
  const auto weighted = [&](const std::string& name, const std::string& weights) {
    return train(directory, name, {"--set", "training.class_weight=" + weights, "--epochs", "2"});
  };
  CHECK(weighted("plain", "{}").exit_code == 0);
  CHECK(weighted("numbered", "{1: 3}").exit_code == 0);
  CHECK(weighted("named", "{melon: 3}").exit_code == 0);
  const auto loss = [&](const char* name) {
    return report_of(directory, name).at("test").at("loss").get<double>();
  };
  CHECK(loss("named") == loss("numbered"));
  CHECK(loss("named") != loss("plain"));
  // An ignored class has no label to be right about.
  const std::string loss_of_melons =
      "loss={type: sparse_categorical_crossentropy, ignore_class: 0}";
  CHECK(train(directory, "melons", {"--set", loss_of_melons, "--epochs", "2"}).exit_code == 0);
  const Finished evaluated = halfstep({"eval", "melons"}, directory.path());
  CAPTURE(evaluated.out);
  CHECK(holds(evaluated.out, "apple                0         -      0     0"));
  CHECK(holds(evaluated.out, "melon               20    1.0000      0    20"));
  const Finished refused = weighted("refused", "{mellon: 3}");
  CHECK(refused.exit_code == 2);
  CHECK(holds(refused.err, "'mellon' is neither the name nor the number of a class"));
  CHECK(holds(refused.err, "did you mean 'melon'? one of apple, melon"));
}

TEST_CASE("table: a warning names a column of numbers that float16 does not hold") {
  const TemporaryDirectory directory;
  std::string rows = "income,age,kind\n";
  for (int i = 0; i < 40; ++i) {
    rows += std::to_string(i % 2 == 0 ? 1000000 : 20000) + "," + std::to_string(20 + i) +
            (i % 2 == 0 ? ",rich\n" : ",poor\n");
  }
  write_text(directory.path() / "people.csv", rows);
  write_text(directory.path() / "run.yaml",
             "data: {format: csv, path: people.csv, table: {target: kind, standardize: false}}\n"
             "model: {input: [2], layers: [{type: dense, units: 2, name: d}, {type: softmax, "
             "dtype: float32}]}\n"
             "loss: sparse_categorical_crossentropy\noptimizer: sgd\n"
             "precision: {policy: mixed_float16}\ntraining: {epochs: 1, batch_size: 8}\n");
  const std::string_view told =
      "samples have values of the column 'income' that are infinite in float16";
  const Finished trained = train(directory, "run");
  CHECK(holds(trained.err, "W122 run.yaml:1:7: data: 20 of 40 training"));
  CHECK(holds(trained.err, told));
  CHECK(holds(trained.err, "data.table.standardize: true"));
  const Finished predicted = halfstep({"predict", "run", "people.csv"}, directory.path());
  CHECK(holds(predicted.err, "20 of 40 samples have values of the column 'income'"));
  CHECK(train(directory, "strict", {"--strict"}).exit_code == 2);
  const Finished good = train(directory, "good", {"--set", "data.table.standardize=true"});
  CHECK(good.exit_code == 0);
  CHECK_FALSE(holds(good.err, "W122"));
}

TEST_CASE("data info: flags that the format does not use are refused") {
  const TemporaryDirectory directory;
  write_text(directory.file("t.csv"), "x,y\n1,a\n2,b\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"t.csv", "--target", "y", "--layout", "nchw"},
        std::vector<std::string>{"t.csv", "--target", "y", "--tokens", "word"},
        std::vector<std::string>{"synthetic_digits", "--target", "y"}}) {
    std::vector<std::string> all{"data", "info"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished end = halfstep(all, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.err.find("does not apply to") != std::string::npos);
  }
}

TEST_CASE("table: data info shows the columns, and the errors of a config say what is needed") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "fruit.csv", fruit(160, true));
  const Finished info = halfstep(
      {"data", "info", "fruit.csv", "--format", "csv", "--target", "kind"}, directory.path());
  CAPTURE(info.out);
  CHECK(info.exit_code == 0);
  CHECK(info.out.starts_with("csv: 160 training and 0 test rows of [3] float32, 2 classes\n"));
  CHECK(holds(info.out, "classes: apple, melon\n"));
  CHECK(holds(info.out, "\ncolour                          2  green, red\n"));
  const Json json = Json::parse(
      halfstep({"data", "info", "fruit.csv", "--format", "csv", "--target", "weight", "--json"},
               directory.path())
          .out);
  CHECK(json.at("classes") == 0);
  CHECK(json.at("columns")[1].at("categories")[0] == "apple");
  const Finished target =
      halfstep({"data", "info", "fruit.csv", "--format", "csv"}, directory.path());
  CHECK(target.exit_code == 2);
  CHECK(holds(target.err, "fruit.csv has weight, colour, kind"));
  const Finished by_name =
      halfstep({"data", "info", "fruit.csv", "--target", "kind"}, directory.path());
  CHECK(by_name.out == info.out);

  write_text(directory.path() / "run.yaml", std::string(k_config));
  const auto check = [&](const std::string& setting) {
    const Finished end =
        halfstep({"config", "check", "run.yaml", "--set", setting}, directory.path());
    CHECK(end.exit_code == 2);
    return end.err;
  };
  CHECK(holds(check("data.table=null"), "the format csv needs data.table.target"));
  CHECK(holds(check("data.table={separator: ab, target: kind}"), "must be one character"));
  CHECK(holds(check("data.table={ignore: [kind], target: kind}"), "holds the target"));
  CHECK(holds(check("data.class_names=[a, b]"), "the values of its target"));
  CHECK(holds(check("data.labels=samples"), "of a csv are its target"));
  CHECK(holds(check("data.format=npz"), "is for the format csv only"));
  // The error names the shape of a sample.
  const Finished width = train(directory, "wide", {"--set", "model.input=[4]"});
  CHECK(width.exit_code == 2);
  CAPTURE(width.err);
  CHECK(holds(width.err, "[3]"));
}

}  // namespace halfstep::test
