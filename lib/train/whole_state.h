#pragma once
// The variables of a run whose ranks divide masters and slots, put together as one process has
// them.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plan/state.h"
#include "train/session.h"

namespace halfstep::train {

/// The state of a run with no variable divided among ranks: the session's own where none is, else
/// a copy in host memory without masters, whose values its weights have. `best` are weights of an
/// epoch as State::weights() gives them, or nothing; they are put together too.
class WholeState {
 public:
  /// All ranks construct it at the same point; those that do not `keep` it have an empty copy.
  /// Blocking. Errors: comm::RankLost.
  WholeState(const Session& session, const std::vector<Tensor>& best, bool keep);

  /// The whole of a divided variable from this rank's slice of it, or of its weights `of_best`.
  using Gather =
      std::function<Tensor(const graph::Variable& variable, const Tensor& slice, bool of_best)>;
  /// Puts together the variables of which `entries` are a rank's. Those that are not divided are
  /// copied.
  WholeState(std::span<const plan::State::Entry> entries,
             const std::vector<Tensor>& best,
             const Gather& gather)
      : own_best_(best) {
    put_together(entries, gather, true);
  }

  const plan::State& state() const { return whole_ ? *whole_ : *own_; }
  const std::vector<Tensor>& best() const { return whole_ ? whole_best_ : own_best_; }

 private:
  void put_together(std::span<const plan::State::Entry> entries, const Gather& gather, bool keep);

  const plan::State* own_ = nullptr;
  const std::vector<Tensor>& own_best_;
  std::optional<plan::State> whole_;
  std::vector<Tensor> whole_best_;
};

}  // namespace halfstep::train
