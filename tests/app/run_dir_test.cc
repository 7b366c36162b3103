// The files of a run directory besides the report.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>
#include <thread>

#include "app/small_run.h"

namespace halfstep::test {

TEST_CASE("run directory: configs stand there as given, and resolved") {
  const TemporaryDirectory directory;
  const std::string text = "# my run\n" + SmallRun().text();
  write_text(directory.file("run.yaml"), text);
  const std::string more = "training: {max_steps: 2}  # short\n";
  write_text(directory.file("more.yaml"), more);
  const Finished end = halfstep(train_arguments("run", {"-c", "more.yaml"}), directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(read_text(directory.file("run/config.yaml")) == text);
  CHECK(read_text(directory.file("run/config.2.yaml")) == more);
  CHECK_FALSE(std::filesystem::exists(directory.file("run/config.3.yaml")));
  const std::string command = read_text(directory.file("run/command.txt"));
  CHECK(command.find("train run.yaml --run-dir run --threads 1 -c more.yaml\n") !=
        std::string::npos);
  // Messages from before the directory existed are in the log too.
  const std::string log = read_text(directory.file("run/log.txt"));
  CHECK(log.starts_with("device: "));
  CHECK(log.find("epoch 1/") != std::string::npos);

  const Finished again =
      halfstep({"train", "run/config.resolved.yaml", "--run-dir", "again", "--threads", "1"},
               directory.path());
  CAPTURE(again.err);
  REQUIRE(again.exit_code == 0);
  CHECK(final_hash(directory, "again") == final_hash(directory, "run"));
}

/// Starts thirty runs of run.yaml at the same moment, with `flags(i)` of the i-th.
template <class Flags>
std::vector<std::unique_ptr<Process>> start_thirty(const TemporaryDirectory& directory,
                                                   const Flags& flags) {
  std::vector<std::unique_ptr<Process>> runs;
  for (int i = 0; i < 30; ++i) {
    std::vector<std::string> words{"train", "run.yaml", "--threads", "1"};
    for (const std::string& flag : flags(i)) words.push_back(flag);
    runs.push_back(std::make_unique<Process>(halfstep_words(words), directory.path()));
  }
  return runs;
}

TEST_CASE("run directory: runs that start together have directories of their own" *
          doctest::test_suite("slow")) {
  SmallRun tiny;
  tiny.data = "{name: synthetic_digits, train_samples: 8, test_samples: 4}";
  tiny.layers = "\n    - {type: dense, units: 10}\n    - {type: softmax, dtype: float32}\n";
  tiny.training = "{epochs: 1, batch_size: 8}";
  for (int round = 0; round < 20; ++round) {
    const TemporaryDirectory directory;
    write_config(directory, tiny);
    std::set<std::string> reports;
    for (const auto& run :
         start_thirty(directory, [](int) { return std::vector<std::string>(); })) {
      const Finished end = run->wait();
      CAPTURE(end.err);
      CHECK(end.exit_code == 0);
      reports.insert(lines(end.out).back().substr(std::string("report: ").size()));
    }
    REQUIRE(reports.size() == 30);
    std::vector<std::string> words{"report", "validate"};
    words.insert(words.end(), reports.begin(), reports.end());
    const Finished valid = halfstep(words, directory.path());
    CAPTURE(valid.err);
    CHECK(valid.exit_code == 0);
  }
}

TEST_CASE("run directory: of runs that start together in one, the first alone writes") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  auto runs = start_thirty(directory, [](int i) {
    return std::vector<std::string>{
        "--run-dir", "run", "--set", "training.epochs=1000", "--seed", std::to_string(i)};
  });
  const auto running = [&] {
    return std::count_if(runs.begin(), runs.end(), [](auto& run) { return run->running(); });
  };
  while (running() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(running() == 1);
  const auto first =
      std::find_if(runs.begin(), runs.end(), [](auto& run) { return run->running(); });
  REQUIRE(wait_for_steps(**first, directory, "run"));
  const std::string seed = std::to_string(first - runs.begin());
  const std::string holder = lines(read_text(directory.file("run/.lock"))).at(0);
  CHECK(holds(holder, " --seed " + seed));
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    if (run == first) (*run)->send(SIGTERM);
    const Finished end = (*run)->wait();
    CAPTURE(end.err);
    CHECK(end.exit_code == (run == first ? 75 : 3));
    if (run != first) CHECK(holds(end.err, "another process uses this directory: " + holder));
  }
  CHECK(holds(read_text(directory.file("run/command.txt")), " --seed " + seed + "\n"));
  CHECK(holds(read_text(directory.file("run/config.resolved.yaml")), "\nseed: " + seed + "\n"));
  CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);
}

TEST_CASE("run directory: a second process is refused and told of the first") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  // The first outlasts the others, however long those take to start on a busy machine.
  const std::vector<std::string> epochs{"--epochs", "10000"};
  Process first(halfstep_words(train_arguments("run", epochs)), directory.path());
  REQUIRE(wait_for_steps(first, directory, "run"));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume", "auto"}}) {
    const Finished second = train(directory, "run", more);
    CAPTURE(second.err);
    CHECK(second.exit_code == 3);
    CHECK(second.err.find("another process uses this directory: process ") != std::string::npos);
    CHECK(second.err.find("train run.yaml --run-dir run") != std::string::npos);
  }
  first.send(SIGTERM);
  CHECK(first.wait().exit_code == 75);
  const std::string next =
      std::to_string(report_of(directory, "run").at("steps").at("applied").get<int>() + 1);
  CHECK(train(directory, "run", {"--resume", "auto", "--epochs", "10000", "--max-steps", next})
            .exit_code == 0);
}

TEST_CASE("run directory: a run goes on in a directory that was renamed") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  Process run(halfstep_words(train_arguments("run")), directory.path());
  REQUIRE(wait_for_steps(run, directory, "run"));
  std::filesystem::rename(directory.file("run"), directory.file("moved"));
  run.send(SIGTERM);
  const Finished end = run.wait();
  CAPTURE(end.err);
  CHECK(end.exit_code == 75);
  CHECK(end.err.find("warning: run was renamed while this process used it") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory.file("run")));
  CHECK(report_of(directory, "moved").at("status") == "preempted");
  CHECK(train(directory, "moved", {"--resume", "auto"}).exit_code == 0);
}

TEST_CASE("run directory: a run whose directory is removed ends, and makes no other") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  Process run(halfstep_words(train_arguments("run")), directory.path());
  REQUIRE(wait_for_steps(run, directory, "run"));
  std::filesystem::rename(directory.file("run"), directory.file("moved"));
  std::filesystem::remove_all(directory.file("moved"));
  const Finished end = run.wait();
  CAPTURE(end.err);
  CHECK(end.exit_code == 3);
  CHECK(end.err.find("error: was removed, or the file .lock in it, while") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory.file("run")));
}

TEST_CASE("run directory: a run that cannot begin leaves none behind") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.data = "{format: npz, path: nowhere.npz}";
  write_config(directory, run);
  CHECK(train(directory, "run").exit_code == 3);
  CHECK_FALSE(std::filesystem::exists(directory.file("run")));
}

TEST_CASE("run: one that trained nothing has failed, whatever it was told to skip") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: mixed_float16, loss_scale: 1e30, on_nonfinite: skip}";
  write_config(directory, run);
  const Finished none = train(directory, "none");
  CAPTURE(none.err);
  CHECK(none.exit_code == 4);
  CHECK(none.err.find("error: the last 12 of 12 steps were skipped") != std::string::npos);
  CHECK(report_of(directory, "none").at("status") == "diverged");

  run.precision = "{policy: float32, on_nonfinite: skip}";
  run.optimizer = "{type: sgd, learning_rate: 1e30}";
  write_config(directory, run);
  const Finished stuck = train(directory, "stuck");
  CAPTURE(stuck.err);
  CHECK(stuck.exit_code == 4);
  CHECK(stuck.err.find("of 12 steps were skipped") != std::string::npos);

  run.precision = "{policy: float32, on_nonfinite: apply}";
  write_config(directory, run);
  const Finished broken = train(directory, "broken");
  CAPTURE(broken.err);
  CHECK(broken.exit_code == 4);
  CHECK(broken.err.find("weights of the model are no longer finite") != std::string::npos);
}

TEST_CASE("command line: without a config the message says what one is") {
  const TemporaryDirectory directory;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"train"},
                                                {"bench"},
                                                {"config", "check"},
                                                {"config", "show"},
                                                {"model", "summary"}}) {
    CAPTURE(words[0]);
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.err.find("CONFIG: error: is missing") != std::string::npos);
    CHECK(end.err.find("halfstep config init") != std::string::npos);
  }
}

}  // namespace halfstep::test
