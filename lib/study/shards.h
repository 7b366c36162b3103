#pragma once
// A comparison in shards: processes that share its runs by means of a directory, at the same time
// or one after another, on one machine or on several. A shard leaves a file for each run that it
// has trained, and the report is made of these files.

#include <cstdint>
#include <string>

#include "study/compare.h"

namespace halfstep::study {

/// One of `count` shards, from 1.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
};

/// "2/5". Errors: UserError(config) at `flag`.
Shard parse_shard(const std::string& text, const std::string& flag);

/// The file with the config of the comparison, in the directory of its shards.
inline constexpr const char* k_shared_config_file = "comparison.yaml";

/// Trains the runs of a shard that `directory` does not hold. Up to as many shards as seeds, a
/// shard has whole seeds, whose policies train in turns; more shards divide the runs, whose times
/// are then not compared. `config` is that of the variants without a policy. Returns `completed`,
/// or the status after a stop request, which drops unfinished runs. Errors: UserError(config)
/// where the directory holds another comparison or there are more shards than runs;
/// UserError(data) where another process trains one of the runs.
train::Status train_shard(const CompareOptions& options,
                          const Shard& shard,
                          const std::string& directory,
                          const config::RunSpec& config,
                          const report::ConfigBlock& block,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          StudyObserver& observer);

/// A comparison that shards have trained.
struct MergedComparison {
  report::CompareReport report;  ///< to be completed
  report::Context context;       ///< of its first run
  report::ConfigBlock config;
};

/// The margin and the gates are those of `options`, whose other members are not used. Errors:
/// UserError(data) with every run that is missing, or that is of another comparison;
/// UserError(config) for gates that do not fit.
MergedComparison merge_shards(const std::string& directory, const CompareOptions& options);

}  // namespace halfstep::study
