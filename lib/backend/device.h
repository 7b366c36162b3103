#pragma once
// A machine beside the host that runs launches on memory of its own, in order, while the host goes
// on.

#include <functional>
#include <memory>

#include "backend/kernel.h"

namespace halfstep::backend {

/// Launches that were written down once and run again as one.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Enqueues them.
  virtual void replay() = 0;
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
