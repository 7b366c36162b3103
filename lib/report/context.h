#pragma once
// The parts of a report that say where, by what and from what it was made.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "report/json.h"

namespace halfstep::report {

/// A Slurm job, as its environment describes it.
struct SlurmJob {
  std::string id;
  std::vector<std::pair<std::string, std::string>> fields;  ///< job_id, partition, ...
};

/// What the program knows of its own call.
struct RunInfo {
  std::string id;
  std::string started_at;  ///< UTC
  std::string directory;   ///< "" without one
  std::int64_t restart_count = 0;
  std::vector<std::string> overrides;  ///< settings over the config, as written
  std::vector<std::string> command;    ///< argv
  std::vector<std::string> configs;    ///< the config files' texts, as given
  std::optional<SlurmJob> slurm;       ///< nothing outside of a job
};

/// Host, processor, versions, build: the `context` of a report and the whole of env.json.
Json context(const backend::Backend& backend);

/// The words of the command that made the report.
Json command_block(const RunInfo& run);

/// `config`: hash and resolved values.
Json config_block(const config::RunSpec& spec, const std::vector<std::string>& overrides);

/// A Node as JSON; scalars become numbers and booleans where they read as such and stand unquoted.
Json to_json(const config::Node& node);

/// Warnings with code, config path and message.
Json warnings(const std::vector<config::Warning>& warnings);

}  // namespace halfstep::report
