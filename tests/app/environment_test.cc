// The variables that halfstep reads.

#include <doctest/doctest.h>

#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

Finished with(const std::string& variable,
              const std::vector<std::string>& arguments,
              const TemporaryDirectory& directory) {
  std::vector<std::string> words{"env", variable};
  const std::vector<std::string> program = halfstep_words(arguments);
  words.insert(words.end(), program.begin(), program.end());
  return Process(words, directory.path()).wait();
}

}  // namespace

TEST_CASE("environment: variables stand for settings and give way to flags") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::string variable;
    std::vector<std::string> flags;
    std::string_view shown;
  };
  for (const Row& row :
       {Row{"HALFSTEP_DEVICE=cuda:1", {}, "kind: cuda  # HALFSTEP_DEVICE\n  index: 1  # HALF"},
        Row{"HALFSTEP_DEVICE=cuda:1", {"--device", "cpu"}, "kind: cpu  # --device\n"},
        Row{"HALFSTEP_THREADS=3", {}, "threads: 3  # HALFSTEP_THREADS\n"},
        Row{"HALFSTEP_THREADS=3", {"--set", "device.threads=2"}, "threads: 2  # --set device"}}) {
    CAPTURE(row.variable);
    std::vector<std::string> words{"config", "show", "run.yaml", "--origins"};
    words.insert(words.end(), row.flags.begin(), row.flags.end());
    const Finished end = with(row.variable, words, directory);
    CAPTURE(end.out);
    CHECK(end.exit_code == 0);
    CHECK(holds(end.out, row.shown));
  }
}

TEST_CASE("environment: the run directory, the log level and the instruction set") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> train{"train", "run.yaml", "--threads", "1", "--max-steps", "1"};
  const Finished run = with("HALFSTEP_RUN_DIR=there", train, directory);
  CHECK(run.exit_code == 0);
  CHECK(holds(run.err, "epoch 1/2"));
  CHECK(std::filesystem::exists(directory.path() / "there" / "report.json"));

  const Finished quiet = with("HALFSTEP_LOG_LEVEL=warning", train, directory);
  CHECK(quiet.exit_code == 0);
  CHECK(quiet.err == "");

  const Finished described =
      with("HALFSTEP_LOG_LEVEL=loud", {"data", "info", "synthetic_digits"}, directory);
  CHECK(described.exit_code == 2);
  CHECK(holds(described.err, "HALFSTEP_LOG_LEVEL: error: must be error, warning"));

  // The variable is no flag of a comparison of finished runs, which keeps nothing.
  const Finished compared =
      with("HALFSTEP_RUN_DIR=here", {"compare", "there", "there/report.json"}, directory);
  CAPTURE(compared.err);
  CHECK_FALSE(holds(compared.err, "does not apply to finished runs"));

  const Finished limited = with("HALFSTEP_MAX_ISA=baseline", {"doctor", "--json"}, directory);
  REQUIRE(limited.exit_code == 0);
  const Json found = Json::parse(limited.out);
  CHECK(found.at("context").at("cpu").at("isa") == Json::array());
  CHECK(holds(found.dump(), "held in 16 bits and multiplied in float32"));
  CHECK(holds(with("HALFSTEP_MAX_ISA=baseline", {"doctor"}, directory).out, "threads, baseline\n"));
}

TEST_CASE("environment: words and variables that mean nothing are named") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::string variable;
    int exit_code;
    std::string_view said;
  };
  for (const Row& row :
       {Row{"HALFSTEP_LOG_LEVEL=loud", 2, "HALFSTEP_LOG_LEVEL: error: must be error, warning"},
        Row{"HALFSTEP_THREADS=many", 2, "HALFSTEP_THREADS: device.threads: error: must be"},
        Row{"HALFSTEP_THRADS=2", 0, "(did you mean 'HALFSTEP_THREADS'?)"}}) {
    CAPTURE(row.variable);
    const Finished end = with(row.variable, {"config", "check", "run.yaml"}, directory);
    CAPTURE(end.err);
    CHECK(end.exit_code == row.exit_code);
    CHECK(holds(end.err, row.said));
  }
}

TEST_CASE(
    "environment: threads are those of the Slurm task, and more than processors are told of") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> words{"train", "run.yaml", "--max-steps", "1", "--run-dir"};
  const auto threads = [&](const std::string& variable,
                           const std::string& run,
                           const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = words;
    all.push_back(run);
    all.insert(all.end(), more.begin(), more.end());
    const Finished end = with(variable, all, directory);
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    CHECK(holds(end.err, "warning: W117 --threads: ") == (run == "many"));
    CHECK(holds(end.err, "warning: W105 SLURM_CPUS_PER_TASK: is 'x'") == (run == "wrong"));
    return report_of(directory, run).at("context").at("threads").get<int>();
  };
  CHECK(threads("SLURM_CPUS_PER_TASK=1", "one") == 1);
  CHECK(threads("SLURM_CPUS_PER_TASK=1", "given", {"--threads", "1"}) == 1);
  const int all = threads("SLURM_CPUS_PER_TASK=100000", "all");
  CHECK(threads("SLURM_CPUS_PER_TASK=x", "wrong") == all);
  CHECK(threads("SLURM_CPUS_PER_TASK=x", "unread", {"--threads", "1"}) == 1);
  CHECK(with("SLURM_CPUS_PER_TASK=x", {"train", "run.yaml", "--dry-run", "--strict"}, directory)
            .exit_code == 2);
  const std::vector<std::string> many{"--threads", std::to_string(all + 1)};
  CHECK(threads("A=b", "many", many) == all + 1);
  const Finished strict = halfstep(
      {"train", "run.yaml", "--run-dir", "strict", many[0], many[1], "--strict"}, directory.path());
  CAPTURE(strict.err);
  CHECK(strict.exit_code == 2);
  CHECK(
      holds(strict.err, "--threads: device.threads: error: W117 requests " + many[1] + " threads"));
}

}  // namespace halfstep::test
