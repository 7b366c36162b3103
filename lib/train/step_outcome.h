#pragma once
// The scalars of a completed step that the host reads from the backend's memory.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "nn/step_graph.h"
#include "plan/plan.h"
#include "plan/state.h"

namespace halfstep::train {

struct StepOutcome {
  bool applied = true;  ///< false when something was not finite
  double loss = 0;
  double learning_rate = 0;
  std::optional<double> loss_scale;  ///< after the step
  std::vector<double> metrics;       ///< sums over the batch, in the order of StepSpec::metrics
};

/// The locations of these scalars in a plan and a state. Plans of one run have the same scalars in
/// the same order.
class OutcomeViews {
 public:
  OutcomeViews(const plan::Plan& plan, const plan::State& state, const nn::StepSpec& step_spec);

  /// In the backend's memory; each of at most k_cell bytes.
  std::span<const TensorView> views() const { return views_; }
  /// `cells` holds the bytes of each view, k_cell apart.
  StepOutcome decode(const std::byte* cells) const;
  /// The outcome of the last step; blocks until it has completed.
  StepOutcome read(backend::Memory& memory) const;

  static constexpr std::size_t k_cell = 8;

 private:
  bool checks_ = false;
  bool scales_ = false;
  std::vector<TensorView> views_;  ///< loss, learning rate, metrics, then "ok" and scale if any
};

}  // namespace halfstep::train
