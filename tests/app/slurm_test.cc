// Runs inside a Slurm job, with a scontrol of our own on the PATH.

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// A scontrol that notes its arguments in `calls` and ends with `status`.
void write_scontrol(const TemporaryDirectory& directory, int status) {
  fs::create_directory(directory.path() / "bin");
  const fs::path script = directory.path() / "bin" / "scontrol";
  write_text(script,
             "#!/bin/sh\necho \"$@\" >> '" + directory.file("calls") + "'\necho told\nexit " +
                 std::to_string(status) + "\n");
  fs::permissions(script, fs::perms::owner_all);
}

std::string calls(const TemporaryDirectory& directory) {
  return fs::exists(directory.path() / "calls") ? read_text(directory.file("calls")) : "";
}

/// Trains under `environment`, sends `signal` in the middle, and waits for the end.
Finished train_and_send(const TemporaryDirectory& directory,
                        std::vector<std::string> environment,
                        const std::vector<std::string>& more,
                        int signal) {
  std::vector<std::string> words{"env", "PATH=" + directory.file("bin") + ":" + getenv("PATH")};
  words.insert(words.end(), environment.begin(), environment.end());
  for (const std::string& word : halfstep_words(train_arguments("run", more))) {
    words.push_back(word);
  }
  Process process(words, directory.path());
  REQUIRE(wait_for_steps(process, directory, "run"));
  process.send(signal);
  return process.wait();
}

}  // namespace

TEST_CASE("slurm: requeue self asks for the job to run again, once the checkpoint stands") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  write_scontrol(directory, 0);
  const Finished end = train_and_send(directory,
                                      {"SLURM_JOB_ID=77", "SLURM_JOB_PARTITION=cpu"},
                                      {"--json", "--set", "slurm.requeue=self"},
                                      SIGUSR1);
  CAPTURE(end.err);
  CHECK(end.exit_code == 75);
  CHECK(calls(directory) == "requeue 77\n");
  CHECK(end.err.find("asked Slurm to run job 77 again") != std::string::npos);
  const Json report = Json::parse(end.out);  // the output of scontrol goes elsewhere
  CHECK(report.at("status") == "preempted");
  const Json job{{"job_id", "77"}, {"partition", "cpu"}};
  CHECK(report.at("run").at("slurm") == job);
  CHECK(fs::exists(directory.path() / "run" / "checkpoints"));
  CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);
}

TEST_CASE("slurm: by default the batch script requeues") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  write_scontrol(directory, 0);
  const Finished end = train_and_send(directory, {"SLURM_JOB_ID=77"}, {}, SIGUSR1);
  CHECK(end.exit_code == 75);
  CHECK(calls(directory).empty());
}

TEST_CASE("slurm: the signal can be chosen; a scontrol that fails is told") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  write_scontrol(directory, 3);
  const Finished end =
      train_and_send(directory,
                     {"SLURM_JOB_ID=78"},
                     {"--set", "slurm.requeue=self", "--set", "slurm.signal=SIGUSR2"},
                     SIGUSR2);
  CAPTURE(end.err);
  CHECK(end.exit_code == 75);
  CHECK(calls(directory) == "requeue 78\n");
  CHECK(end.err.find("it ended with 3") != std::string::npos);
}

TEST_CASE("slurm: a signal that was not chosen keeps its meaning") {
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  write_scontrol(directory, 0);
  const Finished end =
      train_and_send(directory, {"SLURM_JOB_ID=79"}, {"--set", "slurm.signal=SIGUSR2"}, SIGUSR1);
  CHECK(end.signal == SIGUSR1);
}

}  // namespace halfstep::test
