#pragma once
// Which processes of this machine use the same thing, such as a GPU.

#include <sys/types.h>

#include <string>
#include <vector>

namespace halfstep {

/// A name that this process claims beside any number of others, until it ends or the object does.
/// It is the address of an abstract Unix socket: no file is left behind, whatever ends the process,
/// and processes of all users see it. One in a container with a network of its own does not.
class ProcessClaim {
 public:
  /// `name`: at most 80 characters. Where the system denies the socket, nothing is claimed.
  explicit ProcessClaim(const std::string& name);
  ~ProcessClaim();
  ProcessClaim(const ProcessClaim&) = delete;
  ProcessClaim& operator=(const ProcessClaim&) = delete;

  /// The other processes that claim the name now, in ascending order.
  std::vector<pid_t> others() const;

 private:
  std::string prefix_;
  int socket_ = -1;
};

}  // namespace halfstep
