#pragma once
// The machine, the program, the command and the config of a report.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "report/parallel_block.h"
#include "report/study_blocks.h"

namespace halfstep::report {

/// job_id, partition, ... of a Slurm job.
using SlurmFields = std::vector<std::pair<std::string, std::string>>;

/// A Slurm job, from its environment variables.
struct SlurmJob {
  std::string id;
  SlurmFields fields;
};

/// The program's own call.
struct RunInfo {
  std::string id;
  std::string started_at;  ///< UTC
  std::string directory;   ///< "" without one
  std::int64_t restart_count = 0;
  std::vector<std::string> overrides;  ///< settings on top of the config, as written
  std::vector<std::string> command;    ///< argv
  std::vector<std::string> configs;    ///< the texts of the config files, as given
  std::optional<SlurmJob> slurm;       ///< nothing outside of a job
  std::optional<ParallelBlock> ranks;  ///< nothing before all have sent their part, or alone
  std::int64_t rank_count = 1;
};

/// The state of the checkout when the program was compiled.
struct BuildInfo {
  std::string_view version;
  std::string_view build_type;
  std::string_view git_commit;  ///< "" outside a checkout
  bool git_dirty = false;
  std::string_view compiler;
};

BuildInfo build_info();

/// Host, processor, versions, build: the `context` of a report and the content of env.json.
Context context(const backend::Backend& backend);

/// `config`: hash and resolved values.
ConfigBlock config_block(const config::RunSpec& spec, const std::vector<std::string>& overrides);

/// A Node as JSON; scalars become numbers and booleans where they read as such and are not quoted.
Json to_json(const config::Node& node);

/// Warnings with code, config path and message.
std::vector<WarningBlock> warning_blocks(const std::vector<config::Warning>& warnings);

/// The `run` block of a comparison or benchmark that ends now.
StudyRun study_run(const RunInfo& run);

/// Completes the report of a study whose results and status are there: its exit code, process,
/// machine and config. Numbers that are not finite become null.
template <class Report>
void complete(Report& report,
              const RunInfo& run,
              const Context& context,
              decltype(Report::config) config) {
  report.exit_code = exit_code(report);
  report.run = study_run(run);
  report.context = context;
  report.config = std::move(config);
  report.nonfinite = sanitize(field_ref(report));
}

}  // namespace halfstep::report
