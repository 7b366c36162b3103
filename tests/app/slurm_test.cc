// Runs inside a Slurm job, with a scontrol of our own on the PATH.

#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
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

/// A run that lasts some seconds.
SmallRun run_of_seconds() {
  SmallRun run = long_run();
  run.training = "{epochs: 100, batch_size: 8}";
  return run;
}

/// Seconds since 1970, `ahead` from now, as Slurm's variables have it.
std::string unix_time(std::int64_t ahead) {
  return std::to_string(static_cast<std::int64_t>(std::time(nullptr)) + ahead);
}

/// Trains under `environment` until it ends by itself.
Finished train_under(const TemporaryDirectory& directory,
                     const std::vector<std::string>& environment,
                     const std::vector<std::string>& more) {
  std::vector<std::string> words{"env", "PATH=" + directory.file("bin") + ":" + getenv("PATH")};
  words.insert(words.end(), environment.begin(), environment.end());
  for (const std::string& word : halfstep_words(train_arguments("run", more))) {
    words.push_back(word);
  }
  return Process(words, directory.path()).wait();
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
  CHECK(end.err.find("asked Slurm to requeue job 77") != std::string::npos);
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

TEST_CASE("slurm: training leaves before the end of the job with a checkpoint, and goes on") {
  const TemporaryDirectory directory;
  write_config(directory, run_of_seconds());
  fs::create_directory(directory.path() / "bin");
  const fs::path squeue = directory.path() / "bin" / "squeue";
  const std::vector<std::string> lead{"--set", "training.stop_before_time_limit=3600"};
  struct Case {
    const char* name;
    std::vector<std::string> environment;
    std::string left;  ///< that squeue prints
  };
  // Training is to end 3600 s before the job, which must not be over when the process has started.
  for (const Case& c : {Case{"variable", {"SLURM_JOB_END_TIME=" + unix_time(3604)}, "INVALID"},
                        Case{"squeue", {}, "1:00:02"},
                        Case{"squeue, with days", {}, "0-01:00:02"}}) {
    CAPTURE(c.name);
    fs::remove_all(directory.path() / "run");
    write_text(squeue, "#!/bin/sh\necho " + c.left + "\n");
    fs::permissions(squeue, fs::perms::owner_all);
    std::vector<std::string> environment = c.environment;
    environment.emplace_back("SLURM_JOB_ID=80");
    const Finished end = train_under(directory, environment, lead);
    CAPTURE(end.err);
    CHECK(end.exit_code == 75);
    const Json report = report_of(directory, "run");
    CHECK(report.at("status") == "preempted");
    CHECK(report.at("message") == "the time limit is near; please requeue");
    CHECK(fs::exists(directory.path() / "run" / "checkpoints"));
  }
  // The next job has time enough; its result is that of a run that never left.
  const Finished rest = train_under(
      directory,
      {"SLURM_JOB_ID=80", "SLURM_RESTART_COUNT=1", "SLURM_JOB_END_TIME=" + unix_time(7200)},
      lead);
  CAPTURE(rest.err);
  CHECK(rest.exit_code == 0);
  CHECK(train(directory, "whole").exit_code == 0);
  CHECK(final_hash(directory, "run") == final_hash(directory, "whole"));
}

TEST_CASE("slurm: without time before the limit nothing is trained, and no script requeues") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = train_under(directory,
                                   {"SLURM_JOB_ID=80", "SLURM_JOB_END_TIME=" + unix_time(600)},
                                   {"--set", "training.stop_before_time_limit=3600"});
  CHECK(end.exit_code == 2);
  CHECK(end.err.find("no time is left to train: the time limit is in") != std::string::npos);
  CHECK(end.err.find("stop_before_time_limit") != std::string::npos);
  CHECK(!fs::exists(directory.path() / "run" / "checkpoints"));
}

TEST_CASE("slurm: a job whose time limit is unknown is warned of, one without a limit is not") {
  const TemporaryDirectory directory;
  write_config(directory);
  fs::create_directory(directory.path() / "bin");
  const fs::path squeue = directory.path() / "bin" / "squeue";
  const auto answer = [&](const std::string& left) {
    fs::remove_all(directory.path() / "run");
    write_text(squeue, "#!/bin/sh\necho '" + left + "'\n");
    fs::permissions(squeue, fs::perms::owner_all);
    return train_under(
        directory, {"SLURM_JOB_ID=80"}, {"--set", "training.stop_before_time_limit=60"});
  };
  const Finished unknown = answer("NOT_SET");
  CHECK(unknown.exit_code == 0);
  CHECK(unknown.err.find("the time limit of job 80 is not known: squeue: it says 'NOT_SET'") !=
        std::string::npos);
  const Finished none = answer("UNLIMITED");
  CHECK(none.exit_code == 0);
  CHECK(none.err.find("time limit") == std::string::npos);
}

TEST_CASE("slurm: --time-limit ends a run without Slurm") {
  const TemporaryDirectory directory;
  write_config(directory, run_of_seconds());
  const Finished end = train(directory, "run", {"--time-limit", "0.02"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 75);
  CHECK(report_of(directory, "run").at("steps").at("applied") > 1);
  const Finished rest = train(directory, "run", {"--resume", "auto"});
  CHECK(rest.exit_code == 0);
  CHECK(train(directory, "whole").exit_code == 0);
  CHECK(final_hash(directory, "run") == final_hash(directory, "whole"));
}

TEST_CASE("slurm: --time-limit counts from the start of the process") {
  const TemporaryDirectory directory;
  write_config(directory, run_of_seconds());
  // 60 us, which have passed once the config is read.
  const Finished end = train(directory, "run", {"--time-limit", "1e-6"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(end.err.find("training.time_limit: error: no time is left to train") != std::string::npos);
}

}  // namespace halfstep::test
