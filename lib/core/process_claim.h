#pragma once
// Detection of other processes on this machine that use the same resource, such as a GPU.

#include <sys/types.h>

#include <string>
#include <vector>

namespace halfstep {

/// A shared claim of a name, held until the object or the process ends. The claim is an abstract
/// Unix socket address: it leaves no file behind and processes of all users see it, except those in
/// another network namespace.
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
