#pragma once
// The outcome of one training step: the scalars that the host reads from the backend's memory, the
// durations it measured and the values it traced.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "nn/step_graph.h"
#include "plan/plan.h"
#include "plan/state.h"
#include "train/result.h"

namespace halfstep::train {

struct StepOutcome {
  std::int64_t ordinal = 0;  ///< of the batch
  bool applied = true;       ///< false when something was not finite
  bool retry = false;        ///< not applied; the batch must be run again at the lower loss scale
  double loss = 0;
  double learning_rate = 0;
  std::optional<double> loss_scale_before;
  std::optional<double> loss_scale;  ///< after the step
  std::vector<double> metrics;       ///< sums over the batch of StepSpec::counters()
  StepSample time;
  double discarded_seconds = 0;  ///< of pipelined steps after this one that were discarded
  std::optional<FirstNonfinite> first_nonfinite;  ///< of a traced step that was not applied
  std::optional<NumericsSample> numerics;         ///< of a sampled step
};

/// The present loss scale; nothing without loss scaling.
std::optional<double> loss_scale(const plan::State& state);

/// The locations of the scalars of a step in a plan and a state. Plans of one run have the same
/// scalars in the same order.
class OutcomeViews {
 public:
  OutcomeViews(const plan::Plan& plan, const plan::State& state, const nn::StepSpec& step_spec);

  /// In the backend's memory; each of at most k_cell bytes.
  std::span<const TensorView> views() const { return views_; }
  /// Sets applied, loss, learning rate, loss scale and metrics of `outcome`, whose memory is
  /// reused. `cells` holds the bytes of each view, k_cell apart.
  void decode(const std::byte* cells, StepOutcome& outcome) const;
  /// The same with the scalars of the last step; blocks once, until it has completed.
  void read(const std::shared_ptr<backend::Memory>& memory, StepOutcome& outcome);

  static constexpr std::size_t k_cell = 8;

 private:
  bool checks_ = false;
  bool scales_ = false;
  std::vector<TensorView> views_;  ///< loss, learning rate, metrics, then "ok" and scale if any
  // For read(): the scalars side by side in the backend's memory, and on the host.
  backend::Buffer gathered_;
  std::vector<std::byte> cells_;
};

}  // namespace halfstep::train
