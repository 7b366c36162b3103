#pragma once
// The ranks of a training run: processes that mpirun or srun started together.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi.h"
#include "core/error.h"

namespace halfstep::app {

/// The launcher of this process, from the variables that it sets.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", ...; "" for a process that was started alone
  int ranks = 1;
};
Launch launch_of_process();

/// Errors: UserError(config) where this process is one of several ranks, for commands that are one
/// process.
void require_alone(std::string_view command);

/// The MPI library that HALFSTEP_MPI names, or else one that belongs to the launcher of this
/// process.
comm::MpiOptions mpi_options();

/// Ends a rank above 0 whose error rank 0 reports.
struct EndedByAll {
  int exit_code;
};

class Ranks {
 public:
  /// Joins the ranks of the launch. A process that was started alone, or as the only rank, has no
  /// communicator. Messages of ranks above 0 are dropped from then on, except errors, which say
  /// their rank. Errors: UserError(unavailable) where MPI cannot be used.
  Ranks();

  const std::shared_ptr<comm::Communicator>& communicator() const { return communicator_; }
  bool alone() const { return communicator_ == nullptr; }
  /// Whether this process is the one that prints and writes.
  bool speaks() const { return alone() || communicator_->rank() == 0; }
  /// Ranks, this one included, that may use the same processors of the same host.
  int sharing() const { return sharing_; }
  /// This rank's number among those of its host.
  int local_rank() const;
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// "node1 (2), node2 (2)", hosts with their ranks.
  std::string summary() const;

  /// Runs a step of the preparation on all ranks. Where it fails on one, it fails on all: rank 0
  /// throws the errors of all ranks as one, the others EndedByAll. Errors: those of `step`.
  void together(const std::function<void()>& step) const;
  /// A text of rank 0, on all ranks.
  std::string from_first(const std::string& text) const;
  /// Errors: as together(), of kind config, where a rank has another value than rank 0; `remedy`
  /// tells how the ranks get the same one.
  void require_same(const std::string& what, std::string_view value, std::string_view remedy) const;
  /// Ends MPI, after all ranks have done their work.
  void close() const;

 private:
  [[noreturn]] void refuse(const UserError& error) const;

  std::shared_ptr<comm::Communicator> communicator_;
  int sharing_ = 1;
  std::vector<std::string> hosts_;
};

}  // namespace halfstep::app
