#pragma once
// Names of the files of a run directory; run_dir.h describes their contents.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::report {

/// Every setting of the run, defaults included, paths absolute.
inline constexpr std::string_view k_resolved_config_file = "config.resolved.yaml";
inline constexpr std::string_view k_command_file = "command.txt";
inline constexpr std::string_view k_environment_file = "env.json";
inline constexpr std::string_view k_metrics_file = "metrics.jsonl";
inline constexpr std::string_view k_numerics_file = "numerics.jsonl";
inline constexpr std::string_view k_report_file = "report.json";
inline constexpr std::string_view k_status_file = "status.json";
inline constexpr std::string_view k_log_file = "log.txt";
/// The measurements by which the run's kernels were chosen (backend/cost_model.h).
inline constexpr std::string_view k_cost_model_file = "kernel_costs.txt";
inline constexpr std::string_view k_tensorboard_folder = "tb";

/// The copy of config file `index`, from 0: "config.yaml", "config.2.yaml", ...
std::string config_copy_file(std::size_t index);

/// Whether all files that every run writes first exist and are regular files: the resolved config,
/// the command and the environment.
bool is_run_directory(const std::filesystem::path& directory);

/// Paths in a run directory, relative to it, that no run writes, sorted: files and folders of other
/// names, symbolic links, and special files. Removing the directory would lose them. Errors:
/// UserError(data) when the directory cannot be read.
std::vector<std::string> foreign_files(const std::filesystem::path& directory);

}  // namespace halfstep::report
