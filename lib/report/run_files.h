#pragma once
// The files of a run directory, whose contents run_dir.h describes: their names, and readers of the
// config and of the description of the data.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"
#include "data/dataset.h"
#include "report/json.h"

namespace halfstep::report {

/// Every setting of the run, defaults included, paths absolute.
inline constexpr std::string_view k_resolved_config_file = "config.resolved.yaml";
inline constexpr std::string_view k_command_file = "command.txt";
inline constexpr std::string_view k_environment_file = "env.json";
inline constexpr std::string_view k_metrics_file = "metrics.jsonl";
inline constexpr std::string_view k_numerics_file = "numerics.jsonl";
inline constexpr std::string_view k_report_file = "report.json";
/// Reports on the run, by `eval` and `explain`.
inline constexpr std::string_view k_eval_file = "eval.json";
inline constexpr std::string_view k_explain_file = "explain.json";
inline constexpr std::string_view k_status_file = "status.json";
/// Shapes, dtypes and classes of the run's data, so that its model can be used, explained and
/// exported without the data set.
inline constexpr std::string_view k_run_data_file = "data.json";
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

/// The config of a run, from the resolved config in its directory.
/// Errors: UserError(data) when it cannot be read or is not valid.
config::RunSpec read_run_spec(const std::string& directory);

/// Shapes, dtypes, layout, scale and classes of a data set, and its source.
Json run_data(const data::Dataset& dataset);

/// The data set that run_data() described, without samples.
/// Errors: UserError(data) for a file that cannot be read or does not describe one.
data::Dataset read_run_data(const std::string& path);

}  // namespace halfstep::report
