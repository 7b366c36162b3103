// compare and bench as a user calls them: mistakes, gates, leaving early, finished runs.

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <memory>
#include <ostream>
#include <string_view>
#include <thread>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

/// A comparison of two policies over one seed, and more arguments.
Finished compare(const TemporaryDirectory& directory, const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "compare", "run.yaml", "--threads", "1", "--policies", "float32,mixed_bfloat16"};
  words.insert(words.end(), more.begin(), more.end());
  return halfstep(words, directory.path());
}

/// Long enough to be interrupted.
SmallRun endless_run() {
  SmallRun run;
  run.training = "{epochs: 5000, batch_size: 64}";
  return run;
}

}  // namespace

TEST_CASE("compare: mistakes end with 2, all of them named") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::vector<std::string> words;
    std::vector<std::string_view> said;
  };
  const std::vector<Row> rows{
      {{"compare"}, {"needs a CONFIG, or at least two finished RUNs"}},
      {{"compare", "run.yaml", "--margin", "2", "--fail-if", "x <", "--fail-if", ""},
       {"--margin: error: must be above 0",
        "'x <': expected a number, true or false at the end",
        "'': expected a quantity at the end"}},
      {{"compare",
        "run.yaml",
        "--fail-if",
        "mixed_flot16.speedup < 1",
        "--fail-if",
        "mixed_float16.acuracy.delta < 0"},
       {"did you mean 'mixed_float16'?", "did you mean 'accuracy'?"}},
      {{"compare", "run.yaml", "--policies", "float32,mixed_float61"},
       {"did you mean 'mixed_float16'?"}},
      {{"compare", "run.yaml", "--policies", "float32,float32"}, {"is listed twice"}},
      {{"compare", "run.yaml", "--policies", "float32"}, {"nothing to compare float32 with"}},
      {{"compare", "run.yaml", "--policies", "float32,float16", "--policy", "bfloat16"},
       {"--policy: error: has no effect beside --policies"}},
      {{"bench", "run.yaml", "--policies", "float32,float16", "--rewrite", "auto"},
       {"--rewrite: error: has no effect beside --policies"}},
      {{"compare", "run.yaml", "--seed", "9223372036854775807", "--seeds", "2"},
       {"there are fewer than 2 seeds"}},
  };
  for (const Row& row : rows) {
    const Finished end = halfstep(row.words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.out.empty());
    for (std::string_view said : row.said) {
      CAPTURE(said);
      CHECK(holds(end.err, said));
    }
  }
}

TEST_CASE("compare: a rewrite that is asked for is compared, by a flag or by the config") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::vector<std::string>& rewrite :
       {std::vector<std::string>{"--rewrite", "auto"},
        {"--set", "precision={rewrite: auto, target: float16}"}}) {
    std::vector<std::string> words{
        "compare", "run.yaml", "--threads", "1", "--seeds", "1", "--no-run-dir", "--strict"};
    words.insert(words.end(), rewrite.begin(), rewrite.end());
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(holds(end.out, "\nrewrite  "));
    CHECK_FALSE(holds(end.out, "mixed_"));
  }
}

TEST_CASE("compare: gates decide the exit code and are shown with their value") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::string_view gate;
    int exit_code;
    std::string_view said;
  };
  constexpr std::array k_rows{Row{"mixed_bfloat16.accuracy.delta > 100pp", 0, ": false ("},
                              Row{"mixed_bfloat16.accuracy.delta > -100pp", 5, ": true ("},
                              Row{"mixed_bfloat16.accuracy.delta_ci_low < -0.3pp",
                                  5,
                                  ": undecided, which counts as failed (not known)"}};
  for (const Row& row : k_rows) {
    CAPTURE(row.gate);
    const Finished end = compare(directory, {"--seeds", "1", "--fail-if", std::string(row.gate)});
    CAPTURE(end.err);
    CHECK(end.exit_code == row.exit_code);
    CHECK(holds(end.out, "fail if " + std::string(row.gate) + std::string(row.said)));
  }
}

TEST_CASE("compare: runs that miss the target are named and end the comparison with 5") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished missed =
      compare(directory, {"--seeds", "1", "--target", "val_accuracy=1.0", "--run-dir", "missed"});
  CAPTURE(missed.err);
  CHECK(missed.exit_code == 5);
  CHECK(holds(missed.err, "error: float32, seed 7: the target val_accuracy=1 was not reached"));
  CHECK(holds(missed.err, "; mixed_bfloat16, seed 7: the target val_accuracy=1 was not"));
  CHECK(holds(missed.out, "float32: target reached in 0 of 1 runs"));
  CHECK(halfstep({"report", "validate", "missed"}, directory.path()).exit_code == 0);
  CHECK(compare(directory, {"--seeds", "1", "--target", "val_accuracy=0"}).exit_code == 0);
  // Finished runs are put side by side, whatever each was asked for.
  CHECK(train(directory, "a", {"--target", "val_accuracy=1.0"}).exit_code == 5);
  CHECK(halfstep({"compare", "a", "a"}, directory.path()).exit_code == 0);
}

TEST_CASE("compare: the table says what it compares and how to read it") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished several = compare(directory, {"--seeds", "2", "--run-dir", "study"});
  CHECK(several.out.starts_with("2 seeds (7 to 8), all policies from the same weights"));
  for (std::string_view part : {"above 1 is faster than float32", "equivalent (±0.2pp)", "mean"}) {
    CAPTURE(part);
    CHECK(holds(several.out, part));
  }
  // The report of a directory shows the same table.
  const Finished shown = halfstep({"report", "show", "study"}, directory.path());
  const std::string table = several.out.substr(0, several.out.find("report: "));
  CHECK(holds(shown.out, table));
  const Finished exported =
      halfstep({"report", "export", "study", "--format", "markdown"}, directory.path());
  REQUIRE(holds(several.out, "\nuse "));
  CHECK(holds(exported.out, "\nuse "));
  // One seed has neither a mean nor an interval nor a verdict.
  const Finished one = compare(directory, {"--seeds", "1"});
  CHECK(one.out.starts_with("1 seed (7), "));
  for (std::string_view part : {"mean", "[-]", "equivalent (", "vs float32 (95"}) {
    CAPTURE(part);
    CHECK_FALSE(holds(one.out, part));
  }
}

TEST_CASE("compare: asked to leave, studies print a report that is valid") {
  const TemporaryDirectory directory;
  write_config(directory, endless_run());
  struct Row {
    std::string_view command;
    int signal;
    int exit_code;
  };
  constexpr std::array k_rows{Row{"compare", SIGINT, 130}, Row{"bench", SIGTERM, 143}};
  for (const Row& row : k_rows) {
    CAPTURE(row.command);
    std::vector<std::string> words{
        std::string(row.command), "run.yaml", "--threads", "1", "--json"};
    if (row.command == "bench") words.insert(words.end(), {"--steps", "1000000"});
    Process process(halfstep_words(words), directory.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    process.send(row.signal);
    const Finished end = process.wait();
    CAPTURE(end.err);
    REQUIRE(end.exit_code == row.exit_code);
    write_text(directory.file("left.json"), end.out);
    const Finished valid = halfstep({"report", "validate", "left.json"}, directory.path());
    CAPTURE(valid.err);
    CHECK(valid.exit_code == 0);
  }
}

TEST_CASE("bench: a policy that diverges ends it with 4 and the reason, however quiet") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = halfstep(
      {"bench", "run.yaml", "--threads", "1", "-q", "--set", "optimizer.learning_rate=1e30"},
      directory.path());
  CAPTURE(end.err);
  CHECK(end.exit_code == 4);
  CHECK(holds(end.err, "error: float32: "));
  CHECK(holds(end.out, "note: ended early: 0 of 5 repeats are complete"));
}

TEST_CASE("compare: finished runs are put side by side, damaged ones refused") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "a").exit_code == 0);
  REQUIRE(train(directory, "b", {"--set", "optimizer.learning_rate=2e-3"}).exit_code == 0);
  const Finished good = halfstep({"compare", "a", "b"}, directory.path());
  CAPTURE(good.err);
  CHECK(good.exit_code == 0);
  CHECK(good.out.starts_with("finished runs against a: "));
  CHECK(holds(good.out, "optimizer.learning_rate  0.001  0.002"));

  CHECK_FALSE(holds(good.out, "other samples"));

  // Values of different losses and of different data do not compare, and the notes say so.
  REQUIRE(train(directory,
                "other",
                {"--set",
                 "loss={type: categorical_crossentropy, label_smoothing: 0.1}",
                 "--set",
                 "metrics=[]",
                 "--set",
                 "data.train_samples=320"})
              .exit_code == 0);
  const Finished other = halfstep({"compare", "a", "other"}, directory.path());
  CAPTURE(other.out);
  CHECK(
      holds(other.out, "note: other has another loss than a, so that their values do not compare"));
  CHECK(holds(other.out, "note: other was trained on other samples than a"));

  // The headline is an accuracy or a loss, as where policies are trained: others have no unit here.
  REQUIRE(train(directory, "top", {"--set", "metrics=[top_5_accuracy]"}).exit_code == 0);
  CHECK(holds(halfstep({"compare", "top", "top"}, directory.path()).out, "  test loss  diff vs"));

  const Finished flags =
      halfstep({"compare", "a", "b", "--seeds", "2", "--epochs", "3"}, directory.path());
  CHECK(flags.exit_code == 2);
  CHECK(holds(flags.err, "--seeds: error: does not apply to finished runs"));
  CHECK(holds(flags.err, "--epochs: error: does not apply to finished runs"));

  // A run that diverged has no metrics; the others still have theirs.
  train(directory, "c", {"--set", "optimizer.learning_rate=1e30"});
  REQUIRE(report_of(directory, "c").at("status") == "diverged");
  const Finished diverged = halfstep({"compare", "a", "b", "c"}, directory.path());
  CAPTURE(diverged.out);
  CHECK(holds(diverged.out, "test acc"));
  CHECK(holds(diverged.out, "note: c diverged"));

  Json report = report_of(directory, "b");
  report["step_time"]["median"] = -1e308;
  write_text(directory.file("b/report.json"), report.dump());
  const Finished damaged = halfstep({"compare", "a", "b"}, directory.path());
  CHECK(damaged.exit_code == 3);
  CHECK(damaged.out.empty());
  CHECK(holds(damaged.err, "b/report.json: step_time.median: error: is less than p05"));
  write_text(directory.file("b/report.json"), "[1, 2");
  CHECK(holds(halfstep({"compare", "a", "b"}, directory.path()).err, "b/report.json:1:"));
}

TEST_CASE("compare: shards that die are repeated, and --merge makes the report of all") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.training = "{epochs: 40, batch_size: 16}";
  write_config(directory, run);
  const auto words = [](const std::string& shard) {
    return std::vector<std::string>{
        "--seeds", "4", "--run-dir", "shared", "--shard", shard, "--progress", "none"};
  };
  const Finished whole = compare(directory, {"--seeds", "4", "--run-dir", "whole"});
  REQUIRE(whole.exit_code == 0);
  // Killed at any point: before, between and after the files of its runs.
  for (const int milliseconds : {1, 30, 100, 200, 400}) {
    std::vector<std::string> all{
        "compare", "run.yaml", "--threads", "1", "--policies", "float32,mixed_bfloat16"};
    for (const std::string& word : words("1/2")) all.push_back(word);
    Process process(halfstep_words(all), directory.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    process.send(SIGKILL);
    process.wait();
  }
  CHECK(compare(directory, words("1/2")).exit_code == 0);
  const Finished early = halfstep({"compare", "--merge", "shared"}, directory.path());
  CHECK(early.exit_code == 3);
  CHECK(holds(early.err, "the run of float32 with seed 8 is missing"));
  CHECK(holds(early.err, "the run of mixed_bfloat16 with seed 10 is missing"));
  CHECK(compare(directory, words("2/2")).exit_code == 0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Finished merged = halfstep(
        {"compare", "--merge", "shared", "--fail-if", "mixed_bfloat16.test_accuracy.delta < -1"},
        directory.path());
    CAPTURE(merged.err);
    CHECK(merged.exit_code == 0);
  }
  CHECK(halfstep({"report", "validate", "shared"}, directory.path()).exit_code == 0);
  const Json one = report_of(directory, "whole"), merged = report_of(directory, "shared");
  CHECK(one.at("config") == merged.at("config"));
  CHECK(one.at("seeds") == merged.at("seeds"));
  CHECK(one.at("pairs") == merged.at("pairs"));
  REQUIRE(merged.at("runs").size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    for (const std::string key : {"policy",
                                  "seed",
                                  "status",
                                  "steps",
                                  "test",
                                  "train",
                                  "final_hash",
                                  "init_hash",
                                  "batch_order_hash"}) {
      CAPTURE(key);
      CHECK(one.at("runs").at(i).at(key) == merged.at("runs").at(i).at(key));
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::string key : {"policy",
                                  "runs",
                                  "accuracy",
                                  "accuracy_delta",
                                  "mcnemar",
                                  "tost",
                                  "metrics",
                                  "loss_curve",
                                  "precision"}) {
      CAPTURE(key);
      CHECK(one.at("policies").at(i).at(key) == merged.at("policies").at(i).at(key));
    }
  }
  CHECK(merged.at("policies").at(1).at("speedup").at("ci95").is_array());
}

TEST_CASE("compare: shards that begin together in an empty directory all train") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::string shared = "together" + std::to_string(repeat);
    std::vector<std::unique_ptr<Process>> shards;
    for (const std::string shard : {"1/3", "2/3", "3/3"}) {
      const std::vector<std::string> words{"compare",
                                           "run.yaml",
                                           "--threads",
                                           "1",
                                           "--policies",
                                           "float32,mixed_bfloat16",
                                           "--seeds",
                                           "3",
                                           "--run-dir",
                                           shared,
                                           "--shard",
                                           shard,
                                           "--progress",
                                           "none"};
      shards.push_back(std::make_unique<Process>(halfstep_words(words), directory.path()));
    }
    for (const auto& shard : shards) {
      const Finished end = shard->wait();
      CAPTURE(end.err);
      CHECK(end.exit_code == 0);
    }
    CHECK(halfstep({"compare", "--merge", shared}, directory.path()).exit_code == 0);
  }
}

TEST_CASE("compare: mistakes with shards end with 2") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::vector<std::string> words;
    std::string_view said;
  };
  for (const Row& row :
       {Row{{"--shard", "1/2"}, "needs --run-dir"},
        Row{{"--shard", "3/2", "--run-dir", "d"}, "such as 2/5"},
        Row{{"--shard", "1/9", "--run-dir", "d"}, "9 shards for 6 runs"},
        Row{{"--array", "--run-dir", "d"}, "SLURM_ARRAY_TASK_ID is not set"},
        Row{{"--shard", "1/2", "--run-dir", "d", "--fail-if", "a.b < 1"}, "is for --merge"},
        Row{{"--merge", "d"}, "is that of the shards"}}) {
    const Finished end = compare(directory, row.words);
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, row.said));
  }
}

}  // namespace halfstep::test
