#include "train/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "core/files.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/ranges.h"
#include "data/tensor_files.h"

namespace halfstep::train {
namespace {

namespace fs = std::filesystem;
using graph::Role;

constexpr std::string_view k_model = "model.safetensors";
constexpr std::string_view k_optimizer = "optimizer.safetensors";
constexpr std::string_view k_best = "best.safetensors";
constexpr std::string_view k_progress = "state.json";
constexpr std::string_view k_done = "DONE";
/// DONE is removed first, so that an interrupted removal leaves no incomplete checkpoint that seems
/// valid.
constexpr std::array k_files{k_done, k_model, k_optimizer, k_best, k_progress};
constexpr std::string_view k_temporary = ".tmp-";
constexpr std::string_view k_step = "step-";
/// Limit on the size of a DONE, which has four lines of about 60 bytes.
constexpr std::size_t k_max_done_bytes = 4096;

bool in_optimizer(Role role) { return !graph::in_weights(role) && role != Role::derived; }

std::string join(const std::string& dir, std::string_view name) {
  return (fs::path(dir) / name).string();
}

std::vector<data::NamedTensor> tensors(const plan::State& state, bool (*wanted)(Role)) {
  std::vector<data::NamedTensor> named;
  for (const plan::State::Entry& entry : state.entries()) {
    if (wanted(entry.variable.role)) named.push_back({entry.variable.name, entry.tensor.view()});
  }
  return named;
}

/// The tensors of `best`, as State::weights() returns them, with their names in `state`.
std::vector<data::NamedTensor> name_best(const plan::State& state,
                                         const std::vector<Tensor>& best) {
  std::vector<data::NamedTensor> named = tensors(state, graph::in_weights);
  require(named.size() == best.size(), "the best weights are of another model");
  for (std::size_t i = 0; i < best.size(); ++i) named[i].view = best[i].view();
  return named;
}

[[noreturn]] void fail(const std::string& path, const std::string& what, std::string hint = {}) {
  throw UserError(ErrorKind::data, {path, 0, 0, ""}, what, std::move(hint));
}

/// Whether save_checkpoint uses this folder name by default. Other folders next to the checkpoints
/// are the user's.
bool is_step_folder(std::string_view folder) {
  constexpr std::string_view k_digits = "0123456789";
  return folder.starts_with(k_step) && folder.size() > k_step.size() &&
         folder.find_first_not_of(k_digits, k_step.size()) == std::string_view::npos;
}

/// Whether a folder is the leftover of an interrupted save.
bool is_temporary(std::string_view folder) {
  if (folder.starts_with(k_copies_folder)) return true;
  if (!folder.starts_with(k_temporary)) return false;
  folder.remove_prefix(k_temporary.size());
  return is_step_folder(folder) || folder == k_best_checkpoint || folder == k_last_checkpoint;
}

/// Files and folders in a checkpoint's folder that save_checkpoint does not write there. A link to
/// a folder elsewhere has none.
std::vector<fs::path> foreign_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  if (fs::is_symlink(folder, error)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!contains(k_files, name)) found.push_back(entry);
  }
  return found;
}

/// Removes a checkpoint's own files, and its folder unless that holds others.
void remove_checkpoint(const fs::path& folder) {
  std::error_code error;
  if (fs::is_symlink(folder, error)) return;
  for (const std::string_view file : k_files) fs::remove(folder / file, error);
  fs::remove(folder, error);
}

/// Renames a finished folder. An existing one (a checkpoint of the same step) is exchanged
/// atomically, so that one of the two is complete at every moment.
void publish(const std::string& temporary, const std::string& final_path) {
  if (fs::exists(final_path) &&
      ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, final_path.c_str(), RENAME_EXCHANGE) ==
          0) {
    return;
  }
  std::error_code error;
  fs::remove_all(final_path, error);
  fs::rename(temporary, final_path);
}

/// The contents of a file of at most `max_bytes` bytes; a larger one is rejected before reading.
std::string read_limited(const std::string& path, std::size_t max_bytes) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) fail(path, "cannot be read: " + error.message());
  if (bytes > max_bytes) {
    fail(path, fmt::format("has {} bytes, and may have at most {}", bytes, max_bytes));
  }
  return read_file(path);
}

/// The contents of DONE for the files of a checkpoint.
std::string checksums(const std::string& checkpoint) {
  std::string lines;
  for (const std::string_view name : {k_model, k_optimizer, k_best, k_progress}) {
    const std::string path = join(checkpoint, name);
    if (fs::exists(path)) lines += fmt::format("{}  {}\n", hash_file(path), name);
  }
  return lines;
}

/// The first file that differs from DONE, and how; "" for an intact checkpoint. Checkpoints of old
/// versions have an empty DONE and cannot be verified.
std::string damage(const std::string& checkpoint) {
  const std::string done = join(checkpoint, k_done);
  std::error_code error;
  if (fs::file_size(done, error) > k_max_done_bytes) {
    return fmt::format("{} is not valid ({})",
                       k_done,
                       error ? error.message() : fmt::format("above {} bytes", k_max_done_bytes));
  }
  std::istringstream lines(read_file(done));
  for (std::string hash, name; lines >> hash >> name;) {
    const std::string path = join(checkpoint, name);
    if (!fs::exists(path)) return name + " is missing";
    if (hash_file(path) != hash) return name + " does not match its checksum";
  }
  return "";
}

/// The checkpoint at `path`. Errors: UserError(data) where there is none or it is damaged.
std::string intact_checkpoint(const std::string& path) {
  const std::optional<std::string> checkpoint = find_checkpoint(path);
  if (!checkpoint) {
    fail(path,
         fs::exists(path) ? "contains no complete checkpoint" : "there is no such checkpoint");
  }
  const std::string found = damage(*checkpoint);
  if (!found.empty()) fail(*checkpoint, "is damaged: " + found);
  return *checkpoint;
}

/// Loads the variables of one kind. Absent loss-scale variables keep their values.
void load(const std::string& path, plan::State& state, bool (*wanted)(Role)) {
  const data::SafetensorsReader reader(path);
  state.to_host();
  std::vector<Problem> problems;
  const auto problem = [&](std::string message) {
    problems.push_back({{path, 0, 0, ""}, std::move(message), ""});
  };
  std::size_t used = 0;
  for (const plan::State::Entry& entry : state.entries()) {
    if (!wanted(entry.variable.role)) continue;
    const std::optional<graph::Slice>& slice = entry.variable.slice;
    const std::string& name_there = slice ? slice->tensor : entry.variable.name;
    const Shape& shape = slice ? slice->full_shape : entry.tensor.shape();
    const data::SafetensorsEntry* stored = reader.find(name_there);
    const bool master = entry.variable.role == Role::master;
    if (stored == nullptr) {
      if (entry.variable.role != Role::loss_scale && !master) {
        problem(fmt::format("lacks '{}' {}", name_there, to_string(shape)));
      }
      continue;
    }
    used += master ? 0 : 1;
    if (stored->shape != shape) {
      problem(fmt::format("'{}' is {} here, the model needs {}",
                          stored->name,
                          to_string(stored->shape),
                          to_string(shape)));
      continue;
    }
    if (is_floating(stored->dtype) != is_floating(entry.tensor.dtype())) {
      problem(fmt::format("'{}' is {} here, the model needs {}",
                          stored->name,
                          name(stored->dtype),
                          name(entry.tensor.dtype())));
      continue;
    }
    if (!problems.empty()) continue;
    if (slice) {
      plan::copy_slice(reader.read(*stored), *slice, entry.tensor);
    } else {
      convert(reader.read(*stored).view(), entry.tensor.view());
    }
  }
  if (wanted == graph::in_weights && used < reader.entries().size()) {
    for (const data::SafetensorsEntry& stored : reader.entries()) {
      if (!state.contains(stored.name))
        problem(fmt::format("has '{}', the model does not", stored.name));
    }
  }
  if (!problems.empty()) throw UserError(ErrorKind::data, problems);
  state.to_device();
}

}  // namespace

std::string save_checkpoint(const std::string& run_dir,
                            const plan::State& state,
                            const Progress& progress,
                            const std::vector<Tensor>& best,
                            std::string_view name) {
  const std::string root = join(run_dir, k_checkpoints_folder);
  const std::string folder =
      name.empty() ? fmt::format("{}{:06}", k_step, progress.counters.ordinal) : std::string(name);
  const std::string final_path = join(root, folder);
  const std::string temporary = join(root, std::string(k_temporary) + folder);
  std::error_code error;
  state.to_host();
  fs::remove_all(temporary, error);
  make_folder(temporary);
  try {
    const auto write = [&](std::string_view file, std::span<const data::NamedTensor> content) {
      data::write_safetensors(join(temporary, file), content, {{"format", "halfstep"}});
    };
    write(k_model, tensors(state, graph::in_weights));
    write(k_optimizer, tensors(state, in_optimizer));
    if (!best.empty()) write(k_best, name_best(state, best));
    write_file_atomically(join(temporary, k_progress), to_json(progress));
    write_file_atomically(join(temporary, k_done), checksums(temporary));
    // Files of the user in the folder of that name are copied: a kill before the exchange leaves
    // the temporary folder to pruning.
    for (const fs::path& file : foreign_files(final_path)) {
      fs::copy(file,
               fs::path(temporary) / file.filename(),
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    }
    sync_path(temporary);
    publish(temporary, final_path);
    sync_path(root);
    fs::remove_all(temporary, error);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(temporary, error);
    fail(final_path, failure.code().message());
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  return final_path;
}

std::vector<std::string> list_checkpoints(const std::string& run_dir) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(join(run_dir, k_checkpoints_folder), error)) {
    const std::string folder = entry.path().filename().string();
    if (is_step_folder(folder) && fs::exists(entry.path() / k_done)) {
      found.push_back(entry.path().string());
    }
  }
  // By step: names of equal length sort like numbers, longer ones are later.
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found;
}

std::optional<std::int64_t> newest_step(const std::string& run_dir) {
  const std::vector<std::string> have = list_checkpoints(run_dir);
  if (have.empty()) return std::nullopt;
  return std::stoll(fs::path(have.back()).filename().string().substr(k_step.size()));
}

bool is_checkpoint_folder(std::string_view folder) {
  return is_step_folder(folder) || is_temporary(folder) || folder == k_best_checkpoint ||
         folder == k_last_checkpoint;
}

bool is_checkpoint_file(std::string_view folder, std::string_view file) {
  return is_checkpoint_folder(folder) && contains(k_files, file);
}

void prune_checkpoints(const std::string& run_dir, std::int64_t keep) {
  std::error_code error;
  std::vector<std::string> have = list_checkpoints(run_dir);
  for (std::size_t i = 0;
       i + static_cast<std::size_t>(std::max<std::int64_t>(keep, 1)) < have.size();
       ++i) {
    remove_checkpoint(have[i]);
  }
  for (const fs::directory_entry& entry :
       fs::directory_iterator(join(run_dir, k_checkpoints_folder), error)) {
    const fs::path path = entry.path();
    const std::string folder = path.filename().string();
    if (is_temporary(folder)) fs::remove_all(path, error);
    const bool broken = is_step_folder(folder) && !fs::exists(path / k_done);
    if (broken && foreign_files(path).empty()) remove_checkpoint(path);
  }
}

std::optional<std::string> find_checkpoint(const std::string& path) {
  std::vector<std::string> warnings;
  std::optional<std::string> found = find_checkpoint(path, warnings);
  for (const std::string& warning : warnings) log_warning("{}", warning);
  return found;
}

std::optional<std::string> find_checkpoint(const std::string& path,
                                           std::vector<std::string>& warnings) {
  if (fs::exists(fs::path(path) / k_done)) return path;
  std::vector<std::string> have = list_checkpoints(path);
  std::vector<Problem> problems;
  for (; !have.empty(); have.pop_back()) {
    const std::string found = damage(have.back());
    if (found.empty()) break;
    problems.push_back({{have.back(), 0, 0, ""}, "is damaged: " + found, ""});
  }
  if (have.empty() && !problems.empty()) throw UserError(ErrorKind::data, problems);
  for (const Problem& problem : problems) {
    warnings.push_back(
        fmt::format("{} {}; {} is used instead", problem.where.file, problem.message, have.back()));
  }
  if (have.empty()) return std::nullopt;
  return have.back();
}

void load_weights(const std::string& path, plan::State& state) {
  if (fs::is_regular_file(path)) return load(path, state, graph::in_weights);
  load(join(intact_checkpoint(path), k_model), state, graph::in_weights);
}

Loaded load_checkpoint(const std::string& path, plan::State& state) {
  const std::string checkpoint = intact_checkpoint(path);
  const std::string progress_path = join(checkpoint, k_progress);
  Loaded loaded;
  loaded.progress =
      progress_from_json(read_limited(progress_path, k_max_state_bytes), progress_path);
  if (const std::string best = join(checkpoint, k_best); fs::exists(best)) {
    load(best, state, graph::in_weights);
    loaded.best = state.weights();
  }
  load(join(checkpoint, k_model), state, graph::in_weights);
  load(join(checkpoint, k_optimizer), state, in_optimizer);
  return loaded;
}

std::optional<std::string> find_last_beside(const std::string& checkpoint) {
  const fs::path last = fs::path(checkpoint).parent_path() / k_last_checkpoint;
  if (!fs::exists(last / k_done)) return std::nullopt;
  return last.string();
}

}  // namespace halfstep::train
