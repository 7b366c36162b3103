#pragma once
// The weights of the best epoch, which early stopping may restore.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "config/training_spec.h"
#include "plan/state.h"

namespace halfstep::train {

class BestWeights {
 public:
  BestWeights() = default;
  /// Active when the rule asks for restore_best.
  explicit BestWeights(const std::optional<config::EarlyStopping>& rule)
      : active_(rule && rule->restore_best) {}

  /// Takes the weights of a checkpoint. They are part of later checkpoints even where the rule is
  /// not active.
  void load(std::vector<Tensor> weights) {
    weights_ = std::make_shared<const std::vector<Tensor>>(std::move(weights));
  }
  /// Copies the present weights if this epoch is the best one, or there are none yet.
  void update(bool is_best, const plan::State& state) {
    if (active_ && (is_best || weights_->empty())) load(state.weights());
  }
  /// Whether restore() would set weights.
  bool can_restore() const { return active_ && !weights_->empty(); }
  /// Sets the weights and statistics of `state`.
  void restore(plan::State& state) const { state.set_weights(*weights_); }

  /// State::weights() of the best epoch, or nothing.
  const std::vector<Tensor>& weights() const { return *weights_; }
  /// The same, which stay as they are after later updates.
  std::shared_ptr<const std::vector<Tensor>> share() const { return weights_; }

 private:
  bool active_ = false;
  std::shared_ptr<const std::vector<Tensor>> weights_ =
      std::make_shared<const std::vector<Tensor>>();
};

}  // namespace halfstep::train
