#pragma once
// An accelerator with its own memory that runs launches in order, asynchronously to the host.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/kernel.h"

namespace halfstep::backend {

/// Launches captured once as a graph and launched again as a whole (CUDA: a CUDA graph).
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// Enqueues the captured launches; does not block.
  virtual void launch() = 0;
  /// The number of captured kernel launches, copies and fills; 0 where launch() enqueues them one
  /// by one.
  virtual std::size_t nodes() const = 0;
};

/// A point in the order of a device's launches. Captured with them, it is recorded by each launch
/// of the graph.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record() = 0;
  /// Device time since `begin`, of the same device; both must have completed.
  virtual double seconds_since(const Event& begin) const = 0;
};

/// Identification of a device and of its libraries. Versions are "13.0"; "" for an absent library.
struct DeviceInfo {
  std::string name;       ///< "NVIDIA H100 80GB HBM3"
  std::string uuid = {};  ///< the same in all processes; "" where there is none
  std::string flavour;    ///< "cuda"; "emulated": on the host's memory and processor
  int index = 0;          ///< among the devices of the machine
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::string driver;  ///< newest CUDA version that the driver can run
  std::string runtime, cublas, cudnn;
};

class Device {
 public:
  virtual ~Device() = default;
  /// Prepares a launch of a kernel on this device; run() enqueues it.
  virtual Prepared prepare(const Kernel& kernel, const NodeView& node) = 0;
  /// Blocks until all enqueued work has completed. Errors: InternalError when some of it failed.
  virtual void synchronize() = 0;
  /// Captures the launches of `enqueue` without running them (stream capture). Blocking calls and
  /// allocations inside `enqueue` are errors.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& enqueue) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
};

/// A wrapper of `device` that launches eagerly every time a captured graph would be launched:
/// slower, with the same results, and profilers see each kernel launch.
std::shared_ptr<Device> eager_device(std::shared_ptr<Device> device);

}  // namespace halfstep::backend
