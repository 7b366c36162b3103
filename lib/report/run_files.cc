#include "report/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/directory_lock.h"
#include "core/error.h"
#include "core/ranges.h"
#include "report/export/exporter.h"
#include "train/checkpoint.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

/// The files that RunDirectory::begin writes first.
constexpr std::array k_first_files{k_resolved_config_file, k_command_file, k_environment_file};

constexpr std::array k_other_files{k_metrics_file,
                                   k_numerics_file,
                                   k_report_file,
                                   k_eval_file,
                                   k_explain_file,
                                   k_status_file,
                                   k_log_file,
                                   k_cost_model_file,
                                   k_run_data_file,
                                   std::string_view(k_lock_file)};

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_config_copy(std::string_view name) {
  constexpr std::string_view k_before = "config.", k_after = ".yaml";
  if (name == config_copy_file(0)) return true;
  if (!name.starts_with(k_before) || !name.ends_with(k_after)) return false;
  name.remove_prefix(k_before.size());
  return name.size() > k_after.size() && all_digits(name.substr(0, name.size() - k_after.size()));
}

/// "report.json" of "report.json.1234.0.tmp", left over by an OutputFile whose process was killed;
/// other names are unchanged.
std::string_view without_temporary(std::string_view name) {
  constexpr std::string_view k_ending = ".tmp";
  if (!name.ends_with(k_ending)) return name;
  std::string_view rest = name.substr(0, name.size() - k_ending.size());
  for (int part = 0; part < 2; ++part) {
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos || !all_digits(rest.substr(dot + 1))) return name;
    rest = rest.substr(0, dot);
  }
  return rest;
}

bool is_run_file(std::string_view name) {
  const auto is = [name](std::string_view known) { return known == name; };
  return std::ranges::any_of(k_first_files, is) || std::ranges::any_of(k_other_files, is) ||
         is_config_copy(name) || std::ranges::any_of(export_table(), [&](const Exporter* exporter) {
           return is(exporter->file);
         });
}

/// Whether a run writes a file with this path, relative to its directory.
bool is_run_file(const fs::path& path) {
  const auto parts = mapped<std::string>(path, [](const fs::path& part) { return part.string(); });
  const std::string name(without_temporary(parts.back()));
  if (parts.size() == 1) return is_run_file(std::string_view(name));
  if (parts.front() == train::k_checkpoints_folder) {
    return parts.size() == 3 && train::is_checkpoint_file(parts[1], name);
  }
  return parts.size() == 2 && parts.front() == k_tensorboard_folder && name == k_tensorboard.file;
}

/// Whether a run creates a folder with this path.
bool is_run_folder(const fs::path& path) {
  const fs::path above = path.parent_path();
  if (above.empty()) return path == train::k_checkpoints_folder || path == k_tensorboard_folder;
  return above == train::k_checkpoints_folder &&
         train::is_checkpoint_folder(path.filename().string());
}

}  // namespace

std::string config_copy_file(std::size_t index) {
  return index == 0 ? "config.yaml" : fmt::format("config.{}.yaml", index + 1);
}

bool is_run_directory(const fs::path& directory) {
  std::error_code error;
  return std::ranges::all_of(k_first_files, [&](std::string_view name) {
    return fs::symlink_status(directory / name, error).type() == fs::file_type::regular;
  });
}

std::vector<std::string> foreign_files(const fs::path& directory) {
  std::vector<std::string> found;
  try {
    fs::recursive_directory_iterator it(directory);
    for (; it != fs::recursive_directory_iterator(); ++it) {
      const fs::path path = it->path().lexically_relative(directory);
      const fs::file_type type = it->symlink_status().type();
      const bool known = type == fs::file_type::directory ? is_run_folder(path)
                         : type == fs::file_type::regular ? is_run_file(path)
                                                          : false;
      if (known) continue;
      found.push_back(path.string());
      // The contents of an unknown folder are unknown too.
      if (type == fs::file_type::directory) it.disable_recursion_pending();
    }
  } catch (const fs::filesystem_error& error) {
    throw UserError(ErrorKind::data,
                    {directory.string(), 0, 0, ""},
                    "cannot be read: " + error.code().message());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace halfstep::report
