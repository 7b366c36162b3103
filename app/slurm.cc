#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/log.h"
#include "environment.h"
#include "training_run.h"

extern char** environ;

namespace halfstep::app {
namespace {

struct Row {
  std::string_view variable;
  std::string_view field;
};

constexpr std::array k_rows{
    Row{"SLURM_JOB_ID", "job_id"},
    Row{"SLURM_JOB_NAME", "job_name"},
    Row{"SLURM_CLUSTER_NAME", "cluster"},
    Row{"SLURM_JOB_PARTITION", "partition"},
    Row{"SLURM_JOB_NODELIST", "node_list"},
    Row{"SLURM_NTASKS", "tasks"},
    Row{"SLURM_PROCID", "task"},
    Row{"SLURM_ARRAY_JOB_ID", "array_job_id"},
    Row{"SLURM_ARRAY_TASK_ID", "array_task_id"},
    Row{"SLURM_RESTART_COUNT", "restart_count"},
};

/// Runs a program with its standard output redirected to our standard error; returns its exit
/// status, or -1 with errno set.
int run(std::array<std::string, 3> words) {
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    errno = failure;
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::optional<report::SlurmJob> slurm_job() {
  report::SlurmJob job;
  for (const Row& row : k_rows) {
    if (const auto value = environment(row.variable)) job.fields.emplace_back(row.field, *value);
  }
  if (job.fields.empty() || job.fields.front().first != "job_id") return std::nullopt;
  job.id = job.fields.front().second;
  return job;
}

bool requeue(const report::SlurmJob& job) {
  const int status = run({"scontrol", "requeue", job.id});
  if (status == 0) {
    log_info("asked Slurm to run job {} again", job.id);
    return true;
  }
  const std::string why =
      status < 0 ? std::strerror(errno) : fmt::format("it ended with {}", status);
  log_warning("scontrol requeue {}: {}; the batch script has to requeue the job", job.id, why);
  return false;
}

}  // namespace halfstep::app
