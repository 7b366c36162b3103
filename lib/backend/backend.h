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
  std::span<const Kernel> kernels;  ///< of all ops; of one op the best first
  std::shared_ptr<Memory> memory = host_memory();
  std::string note = {};  ///< why it is not the one that would have been preferred
  std::shared_ptr<Device> device = nullptr;  ///< what prepares and runs launches, if not the host
  DeviceFacts facts = {};                    ///< of `device`

  Prepared prepare(const Kernel& row, const NodeView& node) const {
    return device ? device->prepare(row, node) : row.prepare(node, capabilities);
  }
};

/// Which kernel runs a node, and why kernels before it in the order of choice do not.
struct Choice {
  const Kernel* kernel = nullptr;
  std::vector<std::pair<std::string_view, std::string>> refused;
};
/// The first kernel that accepts the node. Kernels are asked in the order of `backend.kernels`,
/// except that those with a predicted time for the node exchange their positions so that the one
/// with the least time comes first.
Choice choose(const Backend& backend, const NodeView& node);

/// The CPU of this machine, with no more than `max_isa`; sets the process's thread count. The limit
/// of oneDNN's own kernels is the first call's, for oneDNN takes none after its first primitive.
Backend cpu_backend(int threads, Isa max_isa = Isa::amx);
/// The CPU with the plain reference kernels alone, the truth the others are tested against.
Backend cpu_reference();

/// Version of the oneDNN library in use, "2.6.3".
std::string onednn_version();

/// The threads that run oneDNN's parallel loops.
struct OneDnnThreads {
  std::string runtime;       ///< "halfstep's pool", "GNU OpenMP", "TBB", ...
  std::optional<int> count;  ///< at most; absent where the runtime alone decides
  std::string reason;        ///< for the runtime and the count
};

/// Those of the library loaded by this process, for the last cpu_backend()'s number of threads.
OneDnnThreads onednn_threads();

}  // namespace halfstep::backend
