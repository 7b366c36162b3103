#pragma once
// Steps that a device goes through without the host: their outcomes gather on the device and come
// back in one copy. When one of them turns out not to be finite they are all taken back, so that
// the host can go through them one by one, trace the bad one and decide.

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/memory.h"
#include "plan/plan.h"
#include "train/session.h"
#include "train/step_outcome.h"

namespace halfstep::train {

class RunAhead {
 public:
  /// Steps of full batches; nullptr when the backend is the host, or its memory has no room for a
  /// second copy of the variables.
  static std::unique_ptr<RunAhead> make(Session& session);

  /// Keeps the variables as they are.
  void begin();
  /// Enqueues a step of `plan`, whose inputs are filled.
  void run(plan::Plan& plan);
  /// Waits for the steps since begin(), and gives what came of each.
  std::vector<StepOutcome> outcomes();
  /// Sets the variables back to what they were at begin().
  void take_back();

  /// Steps between two read-backs, at most.
  static constexpr std::int64_t k_most_steps = 64;

 private:
  RunAhead(Session& session, plan::Plan& plan, bool keeps);

  Session& session_;
  backend::Memory& memory_;
  std::size_t row_bytes_;
  backend::Buffer log_;   ///< a row of cells per step
  backend::Buffer kept_;  ///< the variables; empty where every step is applied
  std::vector<OutcomeViews> steps_;
};

}  // namespace halfstep::train
