#pragma once
// Pipelined steps on a device without a host round trip: one captured graph gathers the next batch,
// runs the step and appends its outcome to a log on the device, which is copied to the host once
// per interval. A non-finite step changes no weights, so the device takes a snapshot of the
// variables after the first one and continues; the host can trace it afterwards. Where the host has
// to decide (for example to stop), the interval ends there: its steps after that one are discarded.

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/memory.h"
#include "plan/plan.h"
#include "train/device_batches.h"
#include "train/session.h"
#include "train/step_outcome.h"

namespace halfstep::train {

class StepPipeline {
 public:
  /// Steps of full batches; nullptr when the device's memory cannot hold two more copies of the
  /// variables.
  static std::unique_ptr<StepPipeline> make(Session& session, DeviceBatches& batches);

  /// The next step is that of batch `ordinal`.
  void begin(std::int64_t ordinal);
  /// Enqueues a step as one launch of the captured graph; does not block.
  void run();
  /// The number of launches of a step, once begin() has captured it.
  std::size_t nodes() const { return captured_->nodes(); }
  /// Blocks until the steps since begin() have completed, and sets the ordinals and scalars of
  /// their outcomes; `first` is the ordinal that begin() got.
  void read(std::int64_t first, std::span<StepOutcome> outcomes);

  /// Sets the variables to those after the first non-finite step, which also hold for the
  /// non-finite steps directly after it, except for the loss scale; leave_overflow_snapshot()
  /// returns to the present ones.
  void restore_overflow_snapshot();
  void leave_overflow_snapshot();

  /// Largest number of steps between two copies of the log to the host.
  static constexpr std::int64_t k_max_steps = 64;

 private:
  StepPipeline(Session& session, DeviceBatches& batches, plan::Plan& plan);

  /// The launches of a step: the next batch, the plan, its outcome.
  void enqueue();
  /// One launch: the log and the snapshot. ok: the finite check of the step, read where the step
  /// has one.
  void enqueue_outcome(const TensorView& ok);
  /// Captures the launches of a step; afterwards the next step is that of batch `ordinal`.
  void capture(std::int64_t ordinal);

  Session& session_;
  backend::Memory& memory_;
  DeviceBatches& batches_;
  plan::Plan& plan_;  ///< of full batches
  bool checks_;       ///< whether a step can be skipped
  OutcomeViews views_;
  std::size_t row_bytes_;
  backend::Buffer log_;      ///< one row of cells per step
  backend::Buffer bad_;      ///< the snapshot after the first non-finite step; empty where none is
  backend::Buffer present_;  ///< the variables that it replaces during a trace
  backend::Buffer snapshot_flags_;  ///< two flags: whether `bad_` is set, and a constant false
  DeviceOp write_log_;
  std::unique_ptr<backend::CapturedGraph> captured_;
  const void* captured_ordinal_ = nullptr;  ///< the address of the plan's ordinal at the capture
  std::vector<std::byte> rows_;             ///< the log on the host
};

}  // namespace halfstep::train
