#include "slurm.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/parse_number.h"
#include "environment.h"

namespace halfstep::app {
namespace {

/// Set before main() begins.
const std::chrono::steady_clock::time_point k_process_start = std::chrono::steady_clock::now();

struct JobVariable {
  std::string_view variable;
  std::string_view field;
};

constexpr std::array k_rows{
    JobVariable{"SLURM_JOB_ID", "job_id"},
    JobVariable{"SLURM_JOB_NAME", "job_name"},
    JobVariable{"SLURM_CLUSTER_NAME", "cluster"},
    JobVariable{"SLURM_JOB_PARTITION", "partition"},
    JobVariable{"SLURM_JOB_NODELIST", "node_list"},
    JobVariable{"SLURM_NTASKS", "tasks"},
    JobVariable{"SLURM_PROCID", "task"},
    JobVariable{"SLURM_ARRAY_JOB_ID", "array_job_id"},
    JobVariable{"SLURM_ARRAY_TASK_ID", "array_task_id"},
    JobVariable{"SLURM_RESTART_COUNT", "restart_count"},
};

struct ProcessResult {
  int status = -1;     ///< exit status; -1: the program did not run
  std::string output;  ///< its standard output
  std::string error;   ///< why it failed
};

/// Runs a program to its end.
ProcessResult run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ProcessResult ended;
  std::array<int, 2> pipe_ends{};
  if (::pipe(pipe_ends.data()) != 0) {
    ended.error = std::strerror(errno);
    return ended;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  std::array<char, 512> buffer{};
  for (ssize_t n = 0;
       failure == 0 && (n = ::read(pipe_ends[0], buffer.data(), buffer.size())) != 0;) {
    if (n > 0) ended.output.append(buffer.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(pipe_ends[0]);
  if (failure != 0) {
    ended.error = std::strerror(failure);
    return ended;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    ended.error = std::strerror(errno);
    return ended;
  }
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (ended.status != 0) ended.error = fmt::format("it ended with {}", ended.status);
  return ended;
}

/// Seconds from Slurm's notation of a duration: [days-][[hours:]minutes:]seconds.
std::optional<double> slurm_seconds(std::string_view text) {
  double seconds = 0, days = 0;
  const std::size_t dash = text.find('-');
  const auto number = [](std::string_view digits) -> std::optional<double> {
    const auto value = parse_number<int>(digits);
    return value && *value >= 0 ? std::optional<double>(*value) : std::nullopt;
  };
  if (dash != std::string_view::npos) {
    const std::optional<double> value = number(text.substr(0, dash));
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  for (;;) {
    const std::size_t colon = text.find(':');
    const std::optional<double> value = number(text.substr(0, colon));
    if (!value) return std::nullopt;
    seconds = 60 * seconds + *value;
    if (colon == std::string_view::npos) return 86400 * days + seconds;
    text.remove_prefix(colon + 1);
  }
}

/// Seconds until Slurm ends the job: from SLURM_JOB_END_TIME, which newer versions set, else from
/// `squeue`. Nothing for a job without a limit; with a warning where the limit cannot be found.
std::optional<double> seconds_to_job_end(const report::SlurmJob& job) {
  if (const auto end = environment_number("SLURM_JOB_END_TIME")) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<double>(*end) - now.count();
  }
  ProcessResult ended = run({"squeue", "--noheader", "--jobs", job.id, "--format", "%L"});
  while (!ended.output.empty() && ended.output.back() == '\n') ended.output.pop_back();
  if (ended.output == "UNLIMITED") return std::nullopt;
  const std::optional<double> seconds = slurm_seconds(ended.output);
  if (!seconds) {
    log_warning("the time limit of job {} is not known: squeue: {}; training.time_limit sets one",
                job.id,
                ended.error.empty() ? "it says '" + ended.output + "'" : ended.error);
  }
  return seconds;
}

}  // namespace

std::optional<report::SlurmJob> slurm_job() {
  report::SlurmJob job;
  for (const JobVariable& row : k_rows) {
    if (const auto value = environment(row.variable)) job.fields.emplace_back(row.field, *value);
  }
  if (job.fields.empty() || job.fields.front().first != "job_id") return std::nullopt;
  job.id = job.fields.front().second;
  return job;
}

int signal_number(config::SlurmSignal signal) {
  switch (signal) {
    case config::SlurmSignal::usr1:
      return SIGUSR1;
    case config::SlurmSignal::usr2:
      return SIGUSR2;
    case config::SlurmSignal::term:
      return SIGTERM;
  }
  return SIGTERM;
}

void requeue(const config::SlurmSpec& spec, const std::optional<report::SlurmJob>& job) {
  if (spec.requeue != config::SlurmRequeue::self) return;
  if (!job) {
    log_warning("slurm.requeue is self, but this is not a Slurm job (SLURM_JOB_ID is not set)");
    return;
  }
  const ProcessResult ended = run({"scontrol", "requeue", job->id});
  if (ended.status == 0) {
    log_info("asked Slurm to requeue job {}", job->id);
  } else {
    log_warning(
        "scontrol requeue {}: {}; the batch script has to requeue the job", job->id, ended.error);
  }
}

std::function<train::Request()> requests_within_limit(const config::TrainingSpec& spec) {
  std::optional<double> seconds;
  if (spec.time_limit) {
    const std::chrono::duration<double> age = std::chrono::steady_clock::now() - k_process_start;
    seconds = 60 * *spec.time_limit - age.count();
  } else if (spec.stop_before_time_limit) {
    const std::optional<report::SlurmJob> job = slurm_job();
    if (job) seconds = seconds_to_job_end(*job);
    if (!job)
      log_info("no time limit: this is not a Slurm job, and training.time_limit is not set");
  }
  if (!seconds) return train::take_request;
  const double ahead = spec.stop_before_time_limit.value_or(0);
  if (*seconds <= ahead) {
    // Exit code 75 would make a batch script requeue the job, with the same result.
    throw UserError(
        ErrorKind::config,
        {"", 0, 0, ahead > 0 ? "training.stop_before_time_limit" : "training.time_limit"},
        fmt::format("no time is left to train: the time limit is in {:.0f} s, and "
                    "training is to end {:.0f} s before it",
                    std::max(*seconds, 0.0),
                    ahead),
        "a longer limit, or a smaller stop_before_time_limit");
  }
  if (!spec.time_limit) {
    log_info("the time limit of the Slurm job is in {:.0f} s; training ends {:.0f} s before it",
             *seconds,
             ahead);
  }
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> left(*seconds - ahead);
  return train::requests_before(Clock::now() + std::chrono::duration_cast<Clock::duration>(left),
                                train::take_request);
}

}  // namespace halfstep::app
