#pragma once
// A machine beside the host that runs launches on memory of its own, in order, while the host goes
// on.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/kernel.h"

namespace halfstep::backend {

/// Launches that were written down once and run again as one.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Enqueues them.
  virtual void replay() = 0;
};

/// What a device is and by what it computes. Versions are "13.0"; "" for what is not there.
struct DeviceFacts {
  std::string name;     ///< "NVIDIA H100 80GB HBM3"
  std::string flavour;  ///< "cuda"; "emulated": on the host's memory and processor
  int index = 0;        ///< among the machine's devices
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::string driver;  ///< newest CUDA version that the driver can run
  std::string runtime, cublas, cudnn;
};

class Device {
 public:
  virtual ~Device() = default;
  /// The launch of a row on this device; run() enqueues it.
  virtual Prepared prepare(const Kernel& row, const NodeView& node) = 0;
  /// Waits until all that was enqueued is done. Errors: InternalError when some of it failed.
  virtual void synchronize() = 0;
  /// Writes down what `enqueue` launches instead of running it.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& enqueue) = 0;
};

}  // namespace halfstep::backend
