#pragma once
// A device's kernels, best first, and its capabilities.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/device.h"
#include "backend/kernel.h"
#include "backend/memory.h"

namespace halfstep::backend {

struct Backend {
  std::string name;  ///< "cpu" or "cuda"
  Capabilities capabilities;
  std::span<const Kernel> kernels;  ///< of all ops; for one op the preferred first
  std::shared_ptr<Memory> memory = host_memory();
  std::string note = {};                     ///< why it is not the preferred one
  std::shared_ptr<Device> device = nullptr;  ///< prepares and runs launches; nullptr: the host
  DeviceFacts facts = {};                    ///< of `device`

  /// The launch of `row`, a kernel of this backend that accepted `node`.
  Prepared prepare(const Kernel& row, const NodeView& node) const {
    return device ? device->prepare(row, node) : row.prepare(node, capabilities);
  }
};

/// The kernel chosen for a node, and why kernels preferred to it refused.
struct Choice {
  const Kernel* kernel = nullptr;
  std::vector<std::pair<std::string_view, std::string>> refused;
};
/// The first kernel that accepts the node. Kernels are tried in the order of `backend.kernels`,
/// except that those with a predicted time for the node are reordered among themselves by that
/// time.
Choice choose(const Backend& backend, const NodeView& node);

/// The CPU of this machine, restricted to `max_isa`; sets the process's thread count. oneDNN's own
/// limit is that of the first call, because oneDNN accepts none after its first primitive.
Backend cpu_backend(int threads, Isa max_isa = Isa::amx);
/// The reason for which the CPU's kernels leave out an instruction set that it has, in a sentence;
/// empty where they leave out none.
std::string_view left_out_isa();
/// The CPU with the reference kernels alone, against which the other kernels are tested.
Backend cpu_reference();

/// Version of the oneDNN library in use, "2.6.3".
std::string onednn_version();

/// The threads that run oneDNN's parallel loops.
struct OneDnnThreads {
  std::string runtime;       ///< "halfstep's pool", "GNU OpenMP", "TBB", ...
  std::optional<int> count;  ///< upper limit; absent where the runtime alone decides
  std::string reason;        ///< for the runtime and the count
};

/// The threads of the loaded oneDNN library, for the thread count of the last cpu_backend().
OneDnnThreads onednn_threads();

}  // namespace halfstep::backend
