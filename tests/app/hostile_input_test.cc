// Malicious or absurd values and files: each ends with a message and its exit code, none with a
// crash.

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("hostile input: sizes and counts beyond 64 bits or any memory are refused") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::vector<std::string> arguments;
    std::string_view message;
  };
  const std::string large = "4611686018427387904";
  const std::vector<Row> rows{
      {{"--set", "data.train_samples=" + large},
       "data.train_samples: error: must be at most 1000000000, got 4"},
      {{"--set", "training.epochs=" + large}, "training.epochs: error: must be at most"},
      {{"--epochs", large}, "--epochs: training.epochs: error: must be at most"},
      {{"--seed", "9223372036854775808"},
       "--seed: seed: error: must be a whole number of at most 64 bits"},
      {{"--seed", "many"}, "--seed: seed: error: must be a whole number, got 'many'"},
      {{"--max-steps", "99999999999999999999"}, "--max-steps: training.max_steps: error: must be"},
      {{"--set", "optimizer.learning_rate=1e300"},
       "learning_rate: error: is too large for a float32, got 1e300"},
      {{"--set", "optimizer.learning_rate=1e-60"},
       "learning_rate: error: is too small for a float32, got 1e-60"},
      {{"--set", "optimizer.epsilon=1e39"}, "epsilon: error: is too large for a float32"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.arguments.back());
    const Finished end = train(directory, "run", row.arguments);
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, row.message));
    CHECK_FALSE(fs::exists(directory.path() / "run" / "report.json"));
  }
  const Finished synth =
      halfstep({"data", "synth", "--out", "d", "--samples", large}, directory.path());
  CHECK(synth.exit_code == 7);
  CHECK(holds(synth.err, "more elements than memory can hold"));
  const Finished verify =
      halfstep({"verify-resume", "run.yaml", "--at-step", "9223372036854775807"}, directory.path());
  CHECK(verify.exit_code == 2);
}

TEST_CASE("hostile input: regular expressions neither crash on long names nor run for ever") {
  const TemporaryDirectory directory;
  SmallRun run;
  const std::string name(100'000, 'a');
  run.layers = "\n    - type: dense\n      units: 10\n      name: " + name +
               "\n    - {type: softmax, dtype: float32}\n";
  run.precision =
      "{policy: float32, overrides: [{match: 're:(a|b)*', dtype: float32}, "
      "{match: 're:(a+)+b', dtype: mixed_bfloat16}]}";
  run.training = "{epochs: 1, batch_size: 64, max_steps: 1}";
  write_config(directory, run);
  const Finished end = train(directory, "run");
  CAPTURE(end.err.substr(0, 1000));
  CHECK(end.exit_code == 0);
  CHECK(end.seconds < 60);
  const Finished wrong = train(
      directory, "wrong", {"--set", "precision.overrides=[{match: 're:(?=a)', dtype: float32}]"});
  CHECK(wrong.exit_code == 2);
  CHECK(holds(wrong.err,
              "precision.overrides[0].match: error: 're:(?=a)' is not a regular expression"));
}

TEST_CASE("hostile input: a foreign report.json beside a checkpoint does not stop a resume") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run").exit_code == 0);
  const std::string hash = final_hash(directory, "run");
  const std::string path = directory.file("run/report.json");
  for (const std::string text : {R"({"status": 5})",
                                 R"({"status": "completed"})",
                                 "[]",
                                 "null",
                                 "\"x\"",
                                 "{\"run\": {\"restart_count\": 1e300}}",
                                 "not JSON",
                                 "",
                                 R"({"kind": "eval", "status": "completed"})"}) {
    CAPTURE(text);
    write_text(path, text);
    const Finished end = train(directory, "run", {"--resume", "auto"});
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(final_hash(directory, "run") == hash);
    CHECK(report_of(directory, "run").at("run").at("restart_count") == 1);
  }
}

TEST_CASE(
    "hostile input: counters of a checkpoint that cannot be are refused with the file's name") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run").exit_code == 0);
  std::string path;
  for (const auto& entry :
       fs::recursive_directory_iterator(directory.path() / "run" / "checkpoints")) {
    if (entry.path().filename() == "state.json") path = entry.path().string();
  }
  REQUIRE_FALSE(path.empty());
  std::string text = read_text(path);
  const std::size_t at = text.find("\"ordinal\": ") + 11;
  text.replace(at, text.find_first_of(",\n", at) - at, "-1");
  write_text(path, text);
  // Without checksums, which would tell of the change.
  write_text(fs::path(path).parent_path() / "DONE", "");
  const std::string checkpoint = fs::path(path).parent_path().string();
  const Finished end = train(directory, "other", {"--resume", checkpoint, "--epochs", "3"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 3);
  CHECK(holds(end.err, "state.json: error: not the state of a run: counters.ordinal is"));
}

TEST_CASE(
    "hostile input: what is written to a terminal holds no control sequence of a file or name") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::string steering = "\x1b]0;title\x07\x1b[2J";
  const std::string graph = "\"" + steering + "\" = Const\nr = Relu(\"" + steering + "\")\n";
  write_text(directory.path() / "graph.txt", graph);
  const std::vector<std::vector<std::string>> commands{
      {"data", "info", steering},
      {"data", "info", steering, "--format", "npz"},
      {"train", steering + ".yaml"},
      {"report", "show", steering},
      {"report", "validate", steering},
      {"explain", "--graph", "graph.txt"},
      {"explain", "--graph", "graph.txt", "--format", "dot"},
      {"train", "run.yaml", "--set-str", "optimizer.type=" + steering},
      {"train", "run.yaml", "--set", "precision.policy=\"\\e[2J\""},
      {"config", "show", "run.yaml", "--set-str", "name=" + steering, "--origins"}};
  for (const std::vector<std::string>& command : commands) {
    CAPTURE(command[0]);
    CAPTURE(command[1]);
    const Finished end = halfstep(command, directory.path());
    CHECK((end.err + end.out).size() > 0);
    CHECK_FALSE(holds(end.err, "\x1b"));
    CHECK_FALSE(holds(end.out, "\x1b"));
    CHECK_FALSE(holds(end.err + end.out, "\x07"));
  }
}

TEST_CASE("hostile input: a config that --set-str made is read again, or is not made") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::string& value : {std::string("a\tb\x01\x7f"),
                                   std::string("\xc2\x85 \xe2\x80\xa8 \xef\xbf\xbe"),
                                   std::string("null"),
                                   std::string("- a: b # c"),
                                   std::string("${env:HOME}")}) {
    CAPTURE(value);
    const Finished shown =
        halfstep({"config", "show", "run.yaml", "--set-str", "device.tuning_folder=" + value},
                 directory.path());
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    write_text(directory.path() / "again.yaml", shown.out);
    const Finished again = halfstep({"config", "show", "again.yaml"}, directory.path());
    CAPTURE(again.err);
    CHECK(again.exit_code == 0);
    CHECK(again.out == shown.out);
  }
  const Finished refused =
      halfstep({"config", "show", "run.yaml", "--set-str", "device.tuning_folder=caf\xe9"},
               directory.path());
  CHECK(refused.exit_code == 2);
  CHECK(holds(refused.err, "is not UTF-8 text"));
}

TEST_CASE("hostile input: a loss scale of 2^40 reads back from the report as 2^40") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: float32, loss_scale: {mode: fixed, initial: 1099511627776}}";
  write_config(directory, run);
  const Finished end = train(directory, "run");
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json scale = report_of(directory, "run").at("loss_scale");
  CHECK(scale.at("initial").get<double>() == 1099511627776.0);
  CHECK(scale.at("final").get<double>() == 1099511627776.0);
}

}  // namespace halfstep::test
