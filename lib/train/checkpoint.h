#pragma once
// Checkpoints: `<run>/checkpoints/step-000938/` with model.safetensors (weights and statistics),
// optimizer.safetensors (slots, counters, loss scale), best.safetensors (weights and statistics of
// the best epoch, which early stopping may restore), state.json (progress) and DONE, which is
// written last: a folder without it is not a checkpoint. DONE has a line `<XXH3-128>  <file>` for
// each file; a checkpoint whose files do not match it is damaged.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/state.h"
#include "train/progress.h"

namespace halfstep::train {

/// Folders of the best checkpoint by `keep_best`, and of the last state of a run whose weights were
/// then restored from its best epoch.
inline constexpr std::string_view k_best_checkpoint = "best";
inline constexpr std::string_view k_last_checkpoint = "last";
/// Begin of the name of a temporary folder with parts of a checkpoint, which prune_checkpoints()
/// removes.
inline constexpr std::string_view k_copies_folder = ".tmp-copies-";
/// The folder of the checkpoints in a run directory.
inline constexpr std::string_view k_checkpoints_folder = "checkpoints";
/// Limit on the size of a state.json; the same as for a report, which holds the same skipped steps
/// and loss-scale changes at about the same size.
inline constexpr std::size_t k_max_state_bytes = std::size_t{256} << 20;

/// Writes a checkpoint under a temporary name, flushes it to disk and renames it; returns its path.
/// Blocking. `best` holds State::weights() of the best epoch, or nothing. `name` is the folder's
/// name; by default "step-<batches drawn>". Errors: UserError(data) when it cannot be written; the
/// temporary folder is then removed.
std::string save_checkpoint(const std::string& run_dir,
                            const plan::State& state,
                            const Progress& progress,
                            const std::vector<Tensor>& best,
                            std::string_view name = {});

/// Complete checkpoints of a run, oldest first, without "best".
std::vector<std::string> list_checkpoints(const std::string& run_dir);
/// The batches drawn before the newest of them; nothing where there is none.
std::optional<std::int64_t> newest_step(const std::string& run_dir);

/// Whether a folder next to the checkpoints has a name that save_checkpoint creates, temporary
/// names included, and whether it writes a file of this name there. All other files are the user's.
bool is_checkpoint_folder(std::string_view folder);
bool is_checkpoint_file(std::string_view folder, std::string_view file);

/// Removes all but the newest `keep` checkpoints and the leftovers of interrupted writes. Files and
/// folders with other names are the user's and are kept, also those in a checkpoint's folder.
void prune_checkpoints(const std::string& run_dir, std::int64_t keep);

/// Reads weights and statistics alone. `path` is a checkpoint, a run directory (its newest
/// checkpoint is used) or a safetensors file. Errors: UserError(data) when it is damaged,
/// incomplete or belongs to another model: every missing, superfluous or differently shaped tensor
/// is named.
void load_weights(const std::string& path, plan::State& state);

/// The contents of a checkpoint besides the variables.
struct Loaded {
  Progress progress;
  std::vector<Tensor> best;  ///< empty when the checkpoint has none
};

/// Reads the full state, so that training continues bit for bit as without the interruption. A
/// loss scale that the checkpoint lacks is initialized, so checkpoints load across policies.
/// Errors: as load_weights; also UserError(data) for a state.json above k_max_state_bytes.
Loaded load_checkpoint(const std::string& path, plan::State& state);

/// The "last" checkpoint next to `checkpoint`, or nothing.
std::optional<std::string> find_last_beside(const std::string& checkpoint);

/// The checkpoint at `path`: the path itself, or the newest intact one of a run directory; a
/// warning names damaged ones that were skipped. Nothing when there is none. Errors:
/// UserError(data) when all checkpoints of a run directory are damaged.
std::optional<std::string> find_checkpoint(const std::string& path);
/// The same; appends the warnings to `warnings` instead of logging them.
std::optional<std::string> find_checkpoint(const std::string& path,
                                           std::vector<std::string>& warnings);

}  // namespace halfstep::train
