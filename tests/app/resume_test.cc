// A run that is stopped, killed or left and then resumed ends with the weights it would have had.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <random>
#include <string_view>
#include <thread>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> k_resumed_policies{
    "float32", "mixed_float16", "mixed_bfloat16"};

}  // namespace

TEST_CASE("resume: after --max-steps the last weights are those of the whole run") {
  for (std::string_view policy : k_resumed_policies) {
    CAPTURE(policy);
    const TemporaryDirectory directory;
    SmallRun run;
    // The scale grows every four steps, so its counter is part of the resumed state.
    if (policy == "mixed_float16")
      run.precision = "{policy: mixed_float16, loss_scale: {mode: dynamic, growth_steps: 4}}";
    else
      run.precision = "{policy: " + std::string(policy) + "}";
    write_config(directory, run);
    REQUIRE(train(directory, "whole").exit_code == 0);
    const Finished part = train(directory, "parts", {"--max-steps", "7"});
    CAPTURE(part.err);
    REQUIRE(part.exit_code == 0);
    CHECK(final_hash(directory, "parts") != final_hash(directory, "whole"));
    const Finished rest = train(directory, "parts", {"--resume", "auto"});
    CAPTURE(rest.err);
    REQUIRE(rest.exit_code == 0);
    const Json whole = report_of(directory, "whole"), parts = report_of(directory, "parts");
    CHECK(parts.at("reproducibility") == whole.at("reproducibility"));
    CHECK(parts.at("steps") == whole.at("steps"));
    CHECK(parts.at("history").at("val_loss") == whole.at("history").at("val_loss"));
    CHECK(parts.at("history").at("loss") == whole.at("history").at("loss"));
    CHECK(parts.at("run").at("restart_count") == 1);
  }
}

TEST_CASE("resume: a finished run prints its report again and changes nothing") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run").exit_code == 0);
  const std::string before = read_text(directory.file("run/report.json"));
  const Finished again = train(directory, "run", {"--resume", "auto", "--json"});
  CHECK(again.exit_code == 0);
  CHECK(again.out == before);
  CHECK(read_text(directory.file("run/report.json")) == before);
}

TEST_CASE("resume: the run directory's cost model chooses kernels again") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "3"}).exit_code == 0);
  const fs::path table = directory.file("run/kernel_costs.txt");
  REQUIRE(fs::exists(table));
  const std::string own =
      "# measured by a test\nmatmul bfloat16 1 16 784 1 1 1 1.000e-05 onednn/matmul by float32\n";
  write_text(table, own);
  const Finished rest = train(directory, "run", {"--resume", "auto", "--max-steps", "5"});
  CAPTURE(rest.err);
  REQUIRE(rest.exit_code == 0);
  const Json context = report_of(directory, "run").at("context");
  CHECK(context.at("cpu").at("kernel_costs").at("origin") == "measured by a test");
  CHECK(read_text(table) == own);

  write_text(table, own + "matmul bfloat16\n");
  const Finished damaged = train(directory, "run", {"--resume", "auto"});
  CHECK(damaged.exit_code == 3);
  CHECK(damaged.err.find("kernel_costs.txt:3") != std::string::npos);
}

TEST_CASE("resume: without a checkpoint the run starts at its beginning") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = train(directory, "run", {"--resume", "auto"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 0);
  CHECK(report_of(directory, "run").at("run").at("resumed_from").is_null());
}

TEST_CASE("resume: signals save a checkpoint, end with their code, and the run goes on from it" *
          doctest::test_suite("slow")) {
  struct Row {
    int signal;
    int code;
    std::string_view status;
  };
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  REQUIRE(train(directory, "whole").exit_code == 0);
  for (const Row& row : {Row{SIGTERM, 75, "preempted"}, Row{SIGINT, 130, "interrupted"}}) {
    CAPTURE(row.status);
    const std::string name(row.status);
    Process process(halfstep_words(train_arguments(name)), directory.path());
    REQUIRE(wait_for_steps(process, directory, name));
    process.send(row.signal);
    const Finished end = process.wait();
    CAPTURE(end.err);
    REQUIRE(end.exit_code == row.code);
    const Json report = report_of(directory, name);
    CHECK(report.at("status") == row.status);
    CHECK(report.at("exit_code") == row.code);
    CHECK(halfstep({"report", "validate", name}, directory.path()).exit_code == 0);
    REQUIRE(train(directory, name, {"--resume", "auto"}).exit_code == 0);
    CHECK(final_hash(directory, name) == final_hash(directory, "whole"));
  }
}

/// How often to kill; HALFSTEP_KILLS selects more than the tests have time for.
int kills() {
  const char* given = std::getenv("HALFSTEP_KILLS");
  return given == nullptr ? 30 : std::stoi(given);
}

/// The newest whole checkpoint of a run; empty when there is none.
std::string newest_checkpoint(const fs::path& run) {
  std::string newest;
  std::error_code gone;  // Pruning removes checkpoints meanwhile.
  for (fs::directory_iterator it(run / "checkpoints", gone), end; !gone && it != end;
       it.increment(gone)) {
    if (fs::exists(it->path() / "DONE", gone)) {
      newest = std::max(newest, it->path().filename().string());
    }
  }
  return newest;
}

TEST_CASE("resume: runs killed again and again end with the same weights" *
          doctest::test_suite("slow")) {
  const TemporaryDirectory directory;
  SmallRun run = long_run();
  run.data = "{name: synthetic_digits, train_samples: 4096, test_samples: 128}";
  run.training = "{epochs: 2, batch_size: 8, checkpoint_every: {steps: 50}}";
  run.precision = "{policy: mixed_bfloat16}";
  write_config(directory, run);
  const Finished whole = train(directory, "whole");
  REQUIRE(whole.exit_code == 0);
  const std::string hash = final_hash(directory, "whole");
  // Delays up to the time of a whole run hit the start and the end. How much of that time are steps
  // depends on the machine, so that every other kill waits for the next checkpoint instead.
  std::mt19937 random(5);
  std::uniform_real_distribution<double> share(0, 1);
  int killed = 0, restarts = 0;
  for (int number = 0; killed < kills(); ++number) {
    const std::string name = "killed-" + std::to_string(number);
    CAPTURE(name);
    bool finished = false;
    while (!finished) {
      const std::string before = newest_checkpoint(directory.file(name));
      Process process(halfstep_words(train_arguments(name, {"--resume", "auto"})),
                      directory.path());
      if (killed < kills()) {
        if (killed % 2 == 0) {
          std::this_thread::sleep_for(std::chrono::duration<double>(whole.seconds * share(random)));
        } else {
          while (process.running() && newest_checkpoint(directory.file(name)) == before) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          }
        }
        process.send(SIGKILL);
      }
      const Finished end = process.wait();
      CAPTURE(end.err);
      killed += end.signal == SIGKILL ? 1 : 0;
      finished = end.signal == 0;
      if (finished) REQUIRE(end.exit_code == 0);
    }
    CHECK(final_hash(directory, name) == hash);
    const Json report = report_of(directory, name);
    restarts += report.at("run").at("restart_count").get<int>();
    for (const char* key : {"loss", "accuracy"}) {
      CHECK(report.at("history").at(key) == report_of(directory, "whole").at("history").at(key));
    }
    fs::remove_all(directory.file(name));
  }
  CAPTURE(killed);
  // Most of the kills after a checkpoint left one to resume from.
  CHECK(restarts >= kills() / 4);
}

TEST_CASE("resume: damaged checkpoints and those of another model end with 3 and say what") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "5"}).exit_code == 0);
  const fs::path checkpoints = directory.path() / "run" / "checkpoints";
  fs::path checkpoint;
  for (const auto& entry : fs::directory_iterator(checkpoints)) checkpoint = entry.path();
  REQUIRE(fs::exists(checkpoint / "DONE"));

  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    CAPTURE(file);
    const std::string good = read_text(checkpoint / file);
    write_text(checkpoint / file, good.substr(0, good.size() / 2));
    const Finished end = train(directory, "run", {"--resume", "auto"});
    CAPTURE(end.err);
    CHECK(end.exit_code == 3);
    CHECK(end.err.find(file) != std::string::npos);
    write_text(checkpoint / file, good);
  }

  // Class numbers where weights should be: as many bytes, and no weights. Without checksums, as
  // checkpoints of old are.
  write_text(checkpoint / "DONE", "");
  const std::string good = read_text(checkpoint / "model.safetensors");
  std::string integers = good;
  integers.replace(integers.find("F32"), 3, "I32");
  write_text(checkpoint / "model.safetensors", integers);
  const Finished wrong = train(directory, "run", {"--resume", "auto"});
  CAPTURE(wrong.err);
  CHECK(wrong.exit_code == 3);
  CHECK(wrong.err.find("is int32 here, the model needs float32") != std::string::npos);
  write_text(checkpoint / "model.safetensors", good);

  SmallRun other;
  other.layers = R"(
    - {type: dense, units: 24, activation: relu, name: hidden}
    - {type: dense, units: 10, name: scores}
    - {type: softmax, dtype: float32}
)";
  write_config(directory, other);
  fs::remove(directory.file("run/config.resolved.yaml"));
  const Finished end = train(directory, "other", {"--resume", checkpoint.string()});
  CAPTURE(end.err);
  CHECK(end.exit_code == 3);
  for (std::string_view tensor : {"hidden/kernel", "scores/kernel", "logits/kernel"}) {
    CAPTURE(tensor);
    CHECK(end.err.find(tensor) != std::string::npos);
  }
}

TEST_CASE("resume: a damaged checkpoint is passed over for the newest one that is whole") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "whole").exit_code == 0);
  REQUIRE(train(directory, "run", {"--max-steps", "6"}).exit_code == 0);
  REQUIRE(train(directory, "run", {"--resume", "auto", "--max-steps", "9"}).exit_code == 0);
  const fs::path newest = directory.file("run/checkpoints/step-000009");
  std::string weights = read_text(newest / "model.safetensors");
  weights[weights.size() - 3] ^= 1;
  write_text(newest / "model.safetensors", weights);
  const Finished end = train(directory, "run", {"--resume", "auto"});
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const std::string_view damaged =
      "step-000009 is damaged: model.safetensors does not match its checksum";
  CHECK(end.err.find(damaged) != std::string::npos);
  CHECK(end.err.find(damaged) == end.err.rfind(damaged));  // once
  CHECK(end.err.find("step-000006 is used instead") != std::string::npos);
  CHECK(final_hash(directory, "run") == final_hash(directory, "whole"));
  // Named itself, it is refused.
  REQUIRE(train(directory, "again", {"--max-steps", "6"}).exit_code == 0);
  const fs::path only = directory.file("again/checkpoints/step-000006");
  write_text(only / "state.json", read_text(only / "state.json") + " ");
  const Finished refused = train(directory, "third", {"--resume", only.string()});
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 3);
  CHECK(refused.err.find("state.json does not match its checksum") != std::string::npos);
}

TEST_CASE("resume: settings that change the result are refused unless they are named") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "7"}).exit_code == 0);
  const std::vector<std::string> other{
      "--resume", "auto", "--policy", "mixed_bfloat16", "--set", "optimizer.learning_rate=5e-4"};
  const Finished refused = train(directory, "run", other);
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("the run began with float32, now it is mixed_bfloat16") !=
        std::string::npos);
  CHECK(refused.err.find("the run began with 1e-3, now it is 5e-4") != std::string::npos);
  CHECK(refused.err.find("--override-resume optimizer.learning_rate") != std::string::npos);

  std::vector<std::string> allowed = other;
  allowed.insert(allowed.end(),
                 {"--override-resume", "precision", "--override-resume", "optimizer"});
  const Finished end = train(directory, "run", allowed);
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json segments = report_of(directory, "run").at("run").at("segments");
  REQUIRE(segments.size() == 2);
  CHECK(segments[0].at("policy") == "float32");
  CHECK(segments[0].at("first_ordinal") == 0);
  CHECK(segments[1].at("policy") == "mixed_bfloat16");
  CHECK(segments[1].at("first_ordinal") == 7);
  CHECK(segments[1].at("changed").size() == 2);
  CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);
}

TEST_CASE("resume: another metric of the best checkpoint is no change of the run") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::string by = "training.keep_best=";
  REQUIRE(train(directory, "run", {"--max-steps", "7", "--set", by + "val_loss"}).exit_code == 0);
  // Accuracies are below the best loss so far, which does not count for them.
  const Finished end = train(directory, "run", {"--resume", "auto", "--set", by + "val_accuracy"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 0);
  REQUIRE(train(directory, "whole", {"--set", by + "val_accuracy"}).exit_code == 0);
  CHECK(fs::exists(directory.path() / "run" / "checkpoints" / "best"));
}

TEST_CASE("train: --dry-run reads the weights of --init-from") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = train(directory, "run", {"--dry-run", "--init-from", "nowhere"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 3);
}

TEST_CASE("resume: batch size, seed and model can never change") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "7"}).exit_code == 0);
  for (const auto& [path, value] :
       {std::pair("training.batch_size", "32"), {"seed", "8"}, {"model.layers[1].rate", "0.5"}}) {
    CAPTURE(path);
    const Finished end = train(
        directory,
        "run",
        {"--resume", "auto", "--set", std::string(path) + "=" + value, "--override-resume", path});
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.err.find("begin a new run") != std::string::npos);
  }
}

TEST_CASE("resume: an end before the checkpoint is an error, a later one is not") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--epochs", "3", "--max-steps", "14"}).exit_code == 0);
  const fs::path checkpoint = directory.file("run/checkpoints/step-000012");
  REQUIRE(fs::exists(checkpoint));
  const Finished end =
      train(directory, "shorter", {"--resume", checkpoint.string(), "--epochs", "1"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(end.err.find("training would end after batch 6, and the checkpoint is at batch 12") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(directory.file("shorter")));
  CHECK(train(directory, "longer", {"--resume", checkpoint.string(), "--epochs", "3"}).exit_code ==
        0);
}

TEST_CASE("resume: a run that failed ends with its exit code again, and says why") {
  const TemporaryDirectory directory;
  SmallRun run;
  write_config(directory, run);
  const std::vector<std::string> missed{"--target", "val_accuracy=1.0"};
  const Finished first = train(directory, "missed", missed);
  CHECK(first.exit_code == 5);
  const std::string why = report_of(directory, "missed")["message"];
  CHECK(why.starts_with("the target val_accuracy=1 was not reached: the best was 0."));
  CHECK(why.ends_with("give it more epochs, or start a run with another target"));
  CHECK(holds(first.err, why));
  std::vector<std::string> again = missed;
  again.insert(again.end(), {"--resume", "auto", "--quiet"});
  const Finished second = train(directory, "missed", again);
  CHECK(second.exit_code == 5);
  CHECK(holds(second.err, "error: missed: " + why));

  run.precision = "{policy: float32, on_nonfinite: stop}";
  run.optimizer = "{type: sgd, learning_rate: 1e30}";
  write_config(directory, run);
  CHECK(train(directory, "diverged").exit_code == 4);
  const Finished diverged = train(directory, "diverged", {"--resume", "auto"});
  CHECK(diverged.exit_code == 4);
  CHECK(holds(diverged.err, "diverged: step "));
  CHECK(holds(diverged.err, "a run that diverged cannot be continued"));
}

TEST_CASE("resume: other threads are told of, other data are refused") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "7"}).exit_code == 0);
  const Finished more = halfstep({"train",
                                  "run.yaml",
                                  "--run-dir",
                                  "run",
                                  "--threads",
                                  "2",
                                  "--resume",
                                  "auto",
                                  "--max-steps",
                                  "8"},
                                 directory.path());
  CAPTURE(more.err);
  CHECK(more.exit_code == 0);
  CHECK(more.err.find("W302") != std::string::npos);
  CHECK(more.err.find("1 threads) and continues on cpu") != std::string::npos);

  std::string state = read_text(directory.file("run/checkpoints/step-000007/state.json"));
  const std::size_t at = state.find("\"data_hash\": \"") + 14;
  state[at] = state[at] == '0' ? '1' : '0';
  write_text(directory.file("run/checkpoints/step-000007/state.json"), state);
  write_text(directory.file("run/checkpoints/step-000007/DONE"), "");
  const Finished other =
      train(directory, "other", {"--resume", directory.file("run/checkpoints/step-000007")});
  CAPTURE(other.err);
  CHECK(other.exit_code == 3);
  CHECK(other.err.find("the training samples differ from those that the run started with") !=
        std::string::npos);
}

}  // namespace halfstep::test
