#include "ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "core/ranges.h"
#include "core/system.h"
#include "environment.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

/// A variable that holds the number of ranks, and the launcher that sets it.
struct LaunchVariable {
  std::string_view variable;
  std::string_view launcher;
};
/// srun sets Slurm's variable with every kind of MPI; within a batch script, which is one process,
/// it is not set.
constexpr std::array k_launch_variables{LaunchVariable{"OMPI_COMM_WORLD_SIZE", "mpirun"},
                                        LaunchVariable{"SLURM_STEP_NUM_TASKS", "srun"},
                                        LaunchVariable{"PMI_SIZE", "mpiexec"}};

/// The processors that this process may use, as text.
std::string affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string text;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return text;
  for (int i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &set) ? '1' : '0';
  return text.substr(0, text.find_last_of('1') + 1);
}

/// The beginning of each line of an error.
constexpr std::string_view k_error = "error: ";

}  // namespace

Launch launch_of_process() {
  for (const LaunchVariable& row : k_launch_variables) {
    const std::int64_t ranks = environment_number(row.variable).value_or(0);
    if (ranks > 1) return {std::string(row.launcher), static_cast<int>(ranks)};
  }
  return {};
}

void require_alone(std::string_view command) {
  const Launch launch = launch_of_process();
  if (launch.ranks < 2) return;
  throw UserError(
      ErrorKind::config,
      {},
      fmt::format(
          "{} is one process, and {} started it {} times", command, launch.launcher, launch.ranks),
      "only train runs on several ranks");
}

comm::MpiOptions mpi_options() {
  const Launch launch = launch_of_process();
  return {.library = environment("HALFSTEP_MPI").value_or(""),
          .ranks = launch.ranks,
          .launcher = launch.launcher,
          .mpich = launch.launcher == "mpiexec"};
}

Ranks::Ranks() {
  const Launch launch = launch_of_process();
  if (launch.ranks < 2) return;
  // Slurm sets the variable where ranks have a protocol.
  if (launch.launcher == "srun" && !environment("SLURM_MPI_TYPE")) {
    throw UserError(
        ErrorKind::unavailable,
        {},
        fmt::format("srun started {} ranks without a PMI server through which they find each other",
                    launch.ranks),
        "srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH; srun --mpi=list");
  }
  communicator_ = comm::start_mpi(mpi_options());
  const int rank = communicator_->rank();
  const std::string host = fmt::format("{} {}", host_name(), affinity());
  const std::vector<std::string> hosts = communicator_->gather(host);
  sharing_ = static_cast<int>(std::ranges::count(hosts, host));
  for (const std::string& each : hosts) hosts_.push_back(each.substr(0, each.find(' ')));
  if (rank == 0) return;
  set_log_sink([rank](LogLevel level, std::string_view message) {
    if (level == LogLevel::error) write_to_stderr(fmt::format("rank {}: {}\n", rank, message));
  });
}

void Ranks::refuse(const UserError& error) const {
  close();
  if (speaks()) throw error;
  throw EndedByAll{static_cast<int>(error.kind())};
}

void Ranks::together(const std::function<void()>& step) const {
  if (alone()) return step();
  std::optional<UserError> own;
  try {
    step();
  } catch (const UserError& error) {
    own = error;
  }
  const std::vector<std::string> all = communicator_->gather(
      own ? fmt::format("{} {}", static_cast<int>(own->kind()), own->what()) : "");
  const auto failed =
      std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
  if (failed == all.end()) return;
  if (std::ranges::count(all, *failed) == std::ssize(all)) refuse(*own);
  int kind = 0;
  std::from_chars(failed->data(), failed->data() + failed->size(), kind);
  std::vector<Problem> problems;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    std::string text = all[r].substr(all[r].find(' ') + 1);
    if (text.starts_with(k_error)) text.erase(0, k_error.size());
    problems.push_back({{fmt::format("rank {} ({})", r, hosts_[r]), 0, 0, ""}, text, ""});
  }
  refuse(UserError(static_cast<ErrorKind>(kind), std::move(problems)));
}

int Ranks::local_rank() const {
  if (alone()) return 0;
  const auto own = hosts_.begin() + communicator_->rank();
  return static_cast<int>(std::count(hosts_.begin(), own, *own));
}

std::string Ranks::summary() const {
  std::vector<std::string> counted;
  for (const std::string& host : hosts_) {
    std::string text = fmt::format("{} ({})", host, std::ranges::count(hosts_, host));
    if (!contains(counted, text)) {
      counted.push_back(std::move(text));
    }
  }
  return fmt::format("{}", fmt::join(counted, ", "));
}

std::string Ranks::from_first(const std::string& text) const {
  return alone() ? text : communicator_->gather(text).front();
}

void Ranks::require_same(const std::string& what,
                         std::string_view value,
                         std::string_view remedy) const {
  if (alone()) return;
  const std::vector<std::string> all = communicator_->gather(std::string(value));
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    refuse(UserError(ErrorKind::config,
                     {},
                     fmt::format("rank {} ({}) has another {} than rank 0 ({}): {} and {}",
                                 r,
                                 hosts_[r],
                                 what,
                                 hosts_[0],
                                 all[r],
                                 all[0]),
                     std::string(remedy)));
  }
}

void Ranks::close() const {
  if (!alone()) communicator_->close();
}

}  // namespace halfstep::app
