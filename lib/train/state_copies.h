#pragma once
// In-memory copies of the variables of a run of several ranks, from which a checkpoint is written
// after a rank was lost. They are not needed on CPUs without sharded variables, where a step
// changes variables after its last all-reduce only. A device continues with incomplete all-reduces,
// and a lost rank takes its shards with it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/memory.h"
#include "comm/communicator.h"
#include "core/tensor.h"
#include "plan/state.h"
#include "train/run_state.h"
#include "train/session.h"

namespace halfstep::train {

class StateCopies {
 public:
  /// All ranks construct it at the same point. Blocking. Errors: comm::RankLost.
  explicit StateCopies(Session& session);

  /// Whether the loss of a rank can leave the variables in another state than after the last step,
  /// so that copies are made.
  bool needed() const { return needed_; }
  /// All ranks call it after the same steps; each parallel.copy_every steps it makes a copy.
  /// Divided variables are sent to the next rank as well. Blocking. Errors: comm::RankLost.
  void after_step(const RunState& run);
  /// Saves the newest copy that is complete, unless there is a newer checkpoint. The ranks that are
  /// left call it, and the lowest of them saves. The others write their shards
  /// to files for it, since nothing can be sent any more; it waits for them as long as for a
  /// message. Errors: UserError(data) when a file cannot be written.
  void save(const comm::RankLost& lost, const std::string& directory);

 private:
  /// Slices of variables one after another, of this rank and of the one before.
  struct SlicePair {
    AlignedBuffer own, before;
  };
  struct Copy {
    std::int64_t ordinal = -1;  ///< of the step after which it was made; below 0: there is none
    bool has_before = false;    ///< whether the other rank's slices have arrived
    Progress progress;
    std::shared_ptr<const std::vector<Tensor>> best;
    backend::Buffer on_device;                ///< all variables, where they are not divided
    std::vector<plan::State::Entry> entries;  ///< else those that are the same on all ranks
    SlicePair slices, slices_of_best;
  };

  void copy_divided(const RunState& run, Copy& copy);
  void exchange(SlicePair& slices);
  void write_slices(const std::string& folder);
  void gather_slices(const std::string& folder, const std::string& directory);

  Session& session_;
  bool needed_ = false;
  std::int64_t every_ = 0;  ///< steps; 0: no copies are made
  std::int64_t last_ = 0;
  std::string id_;  ///< of this process group: names of files are not those of an earlier one
  /// The last two copies of divided variables: save() takes the older one while some rank may not
  /// have completed the newer one.
  std::array<Copy, 2> copies_;
  std::size_t newest_ = 0;
};

}  // namespace halfstep::train
