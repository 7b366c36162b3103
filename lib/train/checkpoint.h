#pragma once
// Checkpoints: `<run>/checkpoints/step-000938/` with model.safetensors (weights and statistics),
// optimizer.safetensors (slots, counters, loss scale), best.safetensors (weights and statistics of
// the epoch that early stopping would set them back to), state.json (progress) and DONE, which is
// written last: a checkpoint without it does not exist. DONE has a line `<XXH3-128>  <file>` for
// each file; a checkpoint that does not agree with it is damaged.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/state.h"
#include "train/progress.h"

namespace halfstep::train {

/// The best checkpoint by `keep_best`, and the last state of a run whose weights were then set back
/// to those of its best epoch.
inline constexpr std::string_view k_best_checkpoint = "best";
inline constexpr std::string_view k_last_checkpoint = "last";
/// Holds the checkpoints of a run, in its directory.
inline constexpr std::string_view k_checkpoints_folder = "checkpoints";
/// Bytes of a state.json that is read; as many as of a report, which holds the same skipped steps
/// and changes of the loss scale at about the same size.
inline constexpr std::size_t k_most_state_bytes = std::size_t{256} << 20;

/// Writes a checkpoint under a temporary name, flushes and renames it; returns its path.
/// `best` holds State::weights() of the best epoch, or nothing. `name` is the folder's name; by
/// default "step-<batches drawn>".
/// Errors: UserError(data) when it cannot be written; nothing is left behind then.
std::string save_checkpoint(const std::string& run_dir,
                            const plan::State& state,
                            const Progress& progress,
                            const std::vector<Tensor>& best,
                            std::string_view name = {});

/// Complete checkpoints of a run, oldest first ("best" left out).
std::vector<std::string> list_checkpoints(const std::string& run_dir);

/// Whether a folder beside the checkpoints has a name that save_checkpoint gives, a temporary one
/// among them, and whether it writes a file of this name there. Everything else is the user's.
bool is_checkpoint_folder(std::string_view folder);
bool is_checkpoint_file(std::string_view folder, std::string_view file);

/// Removes all but the newest `keep` and what broken-off writes have left. Folders and files of
/// other names stay: they are the user's.
void prune_checkpoints(const std::string& run_dir, std::int64_t keep);

/// Reads weights and statistics alone. `path` is a checkpoint, a run directory (its newest
/// checkpoint is taken) or a safetensors file.
/// Errors: UserError(data) when it is damaged, incomplete or belongs to another model: every tensor
/// that is missing, superfluous or of another shape is named.
void load_weights(const std::string& path, plan::State& state);

/// What a checkpoint holds besides the variables.
struct Loaded {
  Progress progress;
  std::vector<Tensor> best;  ///< empty when it has none
};

/// Reads everything, so that training goes on as if it had never stopped. A loss scale that the
/// checkpoint lacks starts anew, so checkpoints load across policies.
/// Errors: as load_weights; also UserError(data) for a state.json above k_most_state_bytes.
Loaded load_checkpoint(const std::string& path, plan::State& state);

/// The "last" checkpoint beside `checkpoint`, or nothing.
std::optional<std::string> find_last_beside(const std::string& checkpoint);

/// The checkpoint that `path` stands for: itself, or the newest one of a run directory that is
/// whole; a warning tells of damaged ones passed over. Nothing when there is none. Errors:
/// UserError(data) when all checkpoints of a run directory are damaged.
std::optional<std::string> find_checkpoint(const std::string& path);

}  // namespace halfstep::train
