#pragma once
// Steps that a device goes through without the host: one recording gathers the next batch, does the
// step and writes what came of it to a log on the device, which comes back in one copy. A step that
// is not finite changes no weights, so the device keeps the variables of the first one and goes on;
// the host can trace it afterwards. Where it has to decide itself, the steps are taken back, and it
// goes through them one by one.

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/memory.h"
#include "plan/plan.h"
#include "train/device_batches.h"
#include "train/session.h"
#include "train/step_outcome.h"

namespace halfstep::train {

class RunAhead {
 public:
  /// Steps of full batches; nullptr when the device's memory has no room for two more copies of the
  /// variables.
  static std::unique_ptr<RunAhead> make(Session& session, DeviceBatches& batches);

  /// Keeps the variables as they are. The next step is that of the batch that was taken last.
  void begin();
  /// Enqueues a step, as one recording.
  void run();
  /// Waits for the `steps` steps since begin(), the first one of batch `first`, and gives what came
  /// of each.
  std::vector<StepOutcome> outcomes(std::int64_t first, std::int64_t steps);

  /// Sets the variables back to what they were at begin().
  void take_back();
  /// Sets the variables to what they were at the first step that was not finite, and at those that
  /// follow it up to the next finite one, but for the loss scale; then back to what the steps have
  /// left. There is no take_back() after that.
  void enter_bad_step();
  void leave_bad_step();

  /// Steps between two read-backs, at most.
  static constexpr std::int64_t k_most_steps = 64;

 private:
  RunAhead(Session& session, DeviceBatches& batches, plan::Plan& plan);

  void enqueue();
  void enqueue_outcome();
  void record();

  Session& session_;
  backend::Memory& memory_;
  DeviceBatches& batches_;
  plan::Plan& plan_;  ///< of full batches
  bool checks_;       ///< whether a step can be left out
  OutcomeViews views_;
  std::size_t row_bytes_;
  backend::Buffer log_;    ///< a row of cells per step
  backend::Buffer kept_;   ///< the variables at begin(); empty where every step is applied
  backend::Buffer bad_;    ///< those of the first step that was not finite
  backend::Buffer taken_;  ///< two flags: whether `bad_` holds any, and a false one
  DeviceOp write_log_;
  std::unique_ptr<DeviceOp> keep_bad_;
  std::unique_ptr<backend::Recording> recording_;
  const void* recorded_ = nullptr;  ///< where the plan's ordinal stood then
};

}  // namespace halfstep::train
