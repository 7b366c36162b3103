#pragma once
// What the host has to know of a step that has run: a few scalars that stand in the backend's
// memory.

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
  std::optional<double> loss_scale;  ///< as the step has left it
  std::vector<double> metrics;       ///< sums over the batch, as Blueprint::metrics names them
};

/// Which scalars of a plan and a state those are. Plans of one run have the same ones in the same
/// order.
class OutcomeViews {
 public:
  OutcomeViews(const plan::Plan& plan, const plan::State& state, const nn::Blueprint& blueprint);

  /// In the backend's memory; each of at most k_cell bytes.
  std::span<const TensorView> views() const { return views_; }
  /// `cells` holds the bytes of each view, k_cell apart.
  StepOutcome decode(const std::byte* cells) const;
  /// The outcome of the step that ran last; waits for it.
  StepOutcome read(backend::Memory& memory) const;

  static constexpr std::size_t k_cell = 8;

 private:
  bool checks_ = false;
  bool scales_ = false;
  std::vector<TensorView> views_;  ///< loss, learning rate, metrics, then "ok" and scale if any
};

}  // namespace halfstep::train
