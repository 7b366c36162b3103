#pragma once
// Checkpoints: `<run>/checkpoints/step-000938/` with model.safetensors (weights and statistics),
// optimizer.safetensors (slots, counters, loss scale), state.json (progress) and DONE, which is
// written last: a checkpoint without it does not exist.

#include <optional>
#include <string>
#include <vector>

#include "plan/state.h"
#include "train/progress.h"

namespace halfstep::train {

/// Writes a checkpoint under a temporary name, flushes and renames it; returns its path.
/// `name` is its folder's name, such as "best"; by default "step-<batches drawn>".
/// Errors: UserError(data) when it cannot be written; nothing is left behind then.
std::string save_checkpoint(const std::string& run_dir,
                            const plan::State& state,
                            const Progress& progress,
                            const std::string& name = {});

/// Complete checkpoints of a run, oldest first ("best" left out).
std::vector<std::string> list_checkpoints(const std::string& run_dir);

/// Removes all but the newest `keep` and what broken-off writes have left.
void prune_checkpoints(const std::string& run_dir, std::int64_t keep);

/// Reads weights and statistics alone. `path` is a checkpoint, a run directory (its newest
/// checkpoint is taken) or a safetensors file.
/// Errors: UserError(data) when it is incomplete or belongs to another model: every tensor that
/// is missing, superfluous or of another shape is named.
void load_weights(const std::string& path, plan::State& state);

/// Reads everything, so that training goes on as if it had never stopped. A loss scale that the
/// checkpoint lacks starts anew, so checkpoints load across policies.
Progress load_checkpoint(const std::string& path, plan::State& state);

/// The checkpoint that `path` (a checkpoint or run directory) stands for, or nothing.
std::optional<std::string> find_checkpoint(const std::string& path);

}  // namespace halfstep::train
