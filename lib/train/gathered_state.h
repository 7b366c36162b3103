#pragma once
// The full variables of a run whose ranks shard masters and slots.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plan/state.h"
#include "train/session.h"

namespace halfstep::train {

/// The state of a run with no variable divided among ranks: the session's own where none is, else
/// a copy in host memory without masters, whose values its weights have. `best` are weights of an
/// epoch as State::weights() gives them, or nothing; they are gathered too.
class GatheredState {
 public:
  /// All ranks construct it at the same point; those that do not `keep` it have an empty copy.
  /// Blocking. Errors: comm::RankLost.
  GatheredState(const Session& session, const std::vector<Tensor>& best, bool keep);

  /// The full value of a sharded variable, from this rank's slice of it, or of its weights
  /// `of_best`.
  using Gather =
      std::function<Tensor(const graph::Variable& variable, const Tensor& slice, bool of_best)>;
  /// Gathers the variables of which `entries` are one rank's shards; copies those not sharded.
  GatheredState(std::span<const plan::State::Entry> entries,
                const std::vector<Tensor>& best,
                const Gather& gather)
      : local_best_(best) {
    gather_all(entries, gather, true);
  }

  const plan::State& state() const { return gathered_ ? *gathered_ : *local_; }
  const std::vector<Tensor>& best() const { return gathered_ ? gathered_best_ : local_best_; }

 private:
  void gather_all(std::span<const plan::State::Entry> entries, const Gather& gather, bool keep);

  const plan::State* local_ = nullptr;
  const std::vector<Tensor>& local_best_;
  std::optional<plan::State> gathered_;
  std::vector<Tensor> gathered_best_;
};

}  // namespace halfstep::train
