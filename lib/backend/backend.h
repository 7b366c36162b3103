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
  std::span<const Kernel> kernels;  ///< of all ops; the kernels of one op in order of preference
  std::shared_ptr<Memory> memory = host_memory();
  std::string note = {};                     ///< why the preferred backend is not used
  std::shared_ptr<Device> device = nullptr;  ///< prepares and runs launches; nullptr: the host
  DeviceInfo device_info = {};               ///< of `device`

  /// The launch of `kernel`, a kernel of this backend that accepted `node`.
  Prepared prepare(const Kernel& kernel, const NodeView& node) const {
    return device ? device->prepare(kernel, node) : kernel.prepare(node, capabilities);
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

/// The CPU of this machine, restricted to `max_isa`; sets the process's thread count. oneDNN keeps
/// the limit of the first call, because it accepts none after its first primitive.
Backend cpu_backend(int threads, Isa max_isa = Isa::amx);
/// Why the kernels do not use an instruction set that the CPU has, as a sentence; empty if they use
/// all of them.
std::string_view disabled_isa_reason();
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
