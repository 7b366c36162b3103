#include "study/shards.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/directory_lock.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/ranges.h"
#include "core/system.h"

namespace halfstep::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_plan_file = "comparison.json";
constexpr const char* k_run_file = "run.json";
constexpr JsonFormat k_format{.nonfinite_strings = true};

/// The comparison that all shards of a directory must agree on.
struct StoredPlan {
  report::ConfigBlock config;
  ComparisonPlan plan;

  void fields(Fields& f) {
    f("config", config, "resolved config and overrides");
    f("policies", plan.policies, "in the order of the report");
    f("baseline", plan.baseline, "with which the others are compared");
    f("metrics", plan.metrics, "with their splits");
    f("headline", plan.headline, "the metric by which policies are judged");
    f("split", plan.split, "whose predictions the runs have");
    f("target", plan.target, "whether a target was set");
    f("seeds", plan.seeds, "of the runs");
  }
};

/// A run with all that a report needs of it.
struct StoredRun {
  std::string plan;  ///< hash of the StoredPlan
  RunRecord record;
  PolicySummary summary;
  std::string load_note;
  report::Context context;
  std::vector<std::int64_t> blocks = {};
  std::vector<double> milliseconds = {};
  std::string right = {};

  void fields(Fields& f) {
    f("plan", plan, "hash of comparison.json");
    f("run", record.run, "its block in the report");
    f("turns", record.turns, "the same for runs that took turns");
    f("blocks", blocks, "of turns, by steady step");
    f("milliseconds", milliseconds, "by steady step");
    f("losses", record.losses, "by batch");
    f("right", right, "1 for each correctly predicted example, else 0");
    f("flops_per_step", summary.flops_per_step, "of a training step");
    f("precision", summary.precision, "of the policy");
    f("warnings", summary.warnings, "of the policy");
    f("load_note", load_note, "on the load of the machine before");
    f("context", context, "where it was trained");
  }
};

/// One run of a comparison: a policy and a seed.
struct RunName {
  std::size_t policy = 0;  ///< of the plan
  std::int64_t seed = 0;

  std::string folder(const std::string& directory, const ComparisonPlan& plan) const {
    return (fs::path(directory) / "runs" / fmt::format("{}-{}", plan.policies[policy], seed))
        .string();
  }
  std::string file(const std::string& directory, const ComparisonPlan& plan) const {
    return (fs::path(folder(directory, plan)) / k_run_file).string();
  }
};

/// Runs that one process trains in turns.
using Unit = std::vector<RunName>;

std::vector<Unit> units_of(const ComparisonPlan& plan, const Shard& shard) {
  std::vector<Unit> units;
  const bool whole_seeds = shard.count <= std::ssize(plan.seeds);
  for (const std::int64_t seed : plan.seeds) {
    for (std::size_t policy = 0; policy < plan.policies.size(); ++policy) {
      if (policy == 0 || !whole_seeds) units.emplace_back();
      units.back().push_back({policy, seed});
    }
  }
  if (shard.count > std::ssize(units)) {
    throw UserError(ErrorKind::config,
                    {"--shard", 0, 0, ""},
                    fmt::format("{} shards for {} runs", shard.count, units.size()),
                    "more --seeds, or fewer shards");
  }
  std::vector<Unit> own;
  for (auto i = static_cast<std::size_t>(shard.index - 1); i < units.size();
       i += static_cast<std::size_t>(shard.count)) {
    own.push_back(std::move(units[i]));
  }
  return own;
}

std::string plan_text(const ComparisonPlan& plan, const report::ConfigBlock& config) {
  return to_json(StoredPlan{config, plan}, k_format).dump(1) + "\n";
}

template <class Stored>
Stored read_stored(const std::string& path) {
  Stored stored;
  std::vector<Violation> violations;
  const Json json = Json::parse(read_file(path), nullptr, false);
  if (!json.is_discarded()) read_json(json, field_ref(stored), violations, k_format);
  if (json.is_discarded() || !violations.empty()) {
    throw UserError(ErrorKind::data,
                    {path, 0, 0, ""},
                    json.is_discarded()
                        ? "is not JSON"
                        : fmt::format("{}: {}", violations[0].path, violations[0].message),
                    "written by another version, or damaged: remove it and repeat its shard");
  }
  return stored;
}

/// Makes a directory, with those above it.
void make_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw UserError(ErrorKind::data, {directory, 0, 0, ""}, error.message());
}

/// Locks a directory that others lock for moments only, such as shards that begin with this one.
std::unique_ptr<DirectoryLock> lock_when_free(const std::string& directory) {
  constexpr int k_attempts = 200, k_attempts_unlocked = 10;
  for (int attempt = 1, unlocked = 0;; ++attempt) {
    try {
      return std::make_unique<DirectoryLock>(directory);
    } catch (const UserError&) {
      // A lock that no process holds was just released, or cannot be created at all.
      if (!directory_in_use(directory).value_or(false)) ++unlocked;
      if (attempt == k_attempts || unlocked == k_attempts_unlocked) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// Keeps the plan in the directory, or compares it with the one there.
void keep_plan(const std::string& directory,
               const std::string& text,
               const config::RunSpec& config) {
  const std::string path = (fs::path(directory) / k_plan_file).string();
  std::error_code error;
  make_directory(directory);
  const std::unique_ptr<DirectoryLock> lock = lock_when_free(directory);
  if (!fs::exists(path, error)) {
    write_file_atomically((fs::path(directory) / k_shared_config_file).string(),
                          config::print(config, {.absolute_paths = true}));
    write_file_atomically(path, text);
    return;
  }
  if (read_file(path) == text) return;
  const Json before = Json::parse(read_file(path), nullptr, false), now = Json::parse(text);
  std::string differs;
  for (const auto& [key, value] : now.items()) {
    if (differs.empty() && (!before.is_object() || before.value(key, Json()) != value)) {
      differs = key;
    }
  }
  throw UserError(ErrorKind::config,
                  {directory, 0, 0, ""},
                  fmt::format("contains another comparison: `{}` differs", differs),
                  "all shards need the same config, policies and seeds, or another --run-dir");
}

bool is_complete(const Unit& unit, const std::string& directory, const ComparisonPlan& plan) {
  return std::ranges::all_of(unit, [&](const RunName& name) {
    std::error_code error;
    return fs::exists(name.file(directory, plan), error);
  });
}

std::string described(const report::Context& context) {
  return fmt::format("{} ({} threads)", context.host_name, context.threads);
}

}  // namespace

Shard parse_shard(const std::string& text, const std::string& flag) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, shard.count) : first;
  if (!slash || second.ec != std::errc() || second.ptr != end || shard.index < 1 ||
      shard.index > shard.count) {
    throw UserError(ErrorKind::config,
                    {flag, 0, 0, ""},
                    fmt::format("must be a number from 1 and the number of shards, got '{}'", text),
                    "such as 2/5");
  }
  return shard;
}

train::Status train_shard(const CompareOptions& options,
                          const Shard& shard,
                          const std::string& directory,
                          const config::RunSpec& config,
                          const report::ConfigBlock& block,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          StudyObserver& observer) {
  const ComparisonPlan plan = plan_of(options, dataset);
  const std::vector<Unit> units = units_of(plan, shard);
  const std::string text = plan_text(plan, block);
  keep_plan(directory, text, config);
  Rounds rounds(options, std::ssize(units), dataset, backend, observer);
  std::int64_t index = 0;
  for (const Unit& unit : units) {
    std::vector<std::unique_ptr<DirectoryLock>> locks;
    std::vector<Variant> variants;
    for (const RunName& name : unit) {
      make_directory(name.folder(directory, plan));
      locks.push_back(std::make_unique<DirectoryLock>(name.folder(directory, plan)));
      variants.push_back(options.variants[name.policy]);
    }
    if (is_complete(unit, directory, plan)) {
      log_info("{}: already done", unit.front().folder(directory, plan));
      ++index;
      continue;
    }
    const std::vector<RunRecord> records =
        train_seed(variants, unit.front().seed, index++, rounds, observer);
    if (records.empty()) return rounds.left_as();
    const std::string turns = fmt::format("{}-{} {} {} {}",
                                          variants.front().name,
                                          unit.front().seed,
                                          host_name(),
                                          ::getpid(),
                                          utc_now());
    for (std::size_t i = 0; i < unit.size(); ++i) {
      StoredRun stored{Hasher().add(text).hex(),
                       records[i],
                       rounds.summaries().at(variants[i].name),
                       rounds.load_note(),
                       report::context(backend)};
      stored.record.turns = turns;
      for (const BlockedStep& step : records[i].steps) {
        stored.blocks.push_back(step.block);
        stored.milliseconds.push_back(step.milliseconds);
      }
      for (const std::uint8_t right : records[i].right) stored.right += right != 0 ? '1' : '0';
      write_file_atomically(unit[i].file(directory, plan), to_json(stored, k_format).dump() + "\n");
    }
  }
  return train::Status::completed;
}

MergedComparison merge_shards(const std::string& directory, const CompareOptions& options) {
  const std::string plan_path = (fs::path(directory) / k_plan_file).string();
  std::error_code error;
  if (!fs::exists(plan_path, error)) {
    throw UserError(ErrorKind::data, {directory, 0, 0, ""}, "no shard has trained here");
  }
  StoredPlan stored_plan = read_stored<StoredPlan>(plan_path);
  ComparisonPlan& plan = stored_plan.plan;
  plan.margin = options.margin;
  check_gates(options.gates, plan);
  const std::string hash = Hasher().add(read_file(plan_path)).hex();
  Diagnostics diagnostics;
  ComparisonResults results;
  std::vector<std::string> machines;
  std::set<std::string> apart;
  MergedComparison merged;
  for (const std::int64_t seed : plan.seeds) {
    std::string turns;
    for (std::size_t policy = 0; policy < plan.policies.size(); ++policy) {
      const RunName name{policy, seed};
      const std::string path = name.file(directory, plan);
      if (!fs::exists(path, error)) {
        const bool begun = directory_in_use(name.folder(directory, plan)).value_or(false);
        diagnostics.error({directory, 0, 0, ""},
                          fmt::format("the run of {} with seed {} {}",
                                      plan.policies[policy],
                                      seed,
                                      begun ? "is being trained" : "is missing"));
        continue;
      }
      StoredRun stored = read_stored<StoredRun>(path);
      if (stored.plan != hash || stored.record.run.policy != plan.policies[policy] ||
          stored.record.run.seed != seed || stored.blocks.size() != stored.milliseconds.size()) {
        diagnostics.error({path, 0, 0, ""}, "is of another comparison");
        continue;
      }
      for (std::size_t i = 0; i < stored.blocks.size(); ++i) {
        stored.record.steps.push_back({stored.blocks[i], stored.milliseconds[i]});
      }
      for (const char right : stored.right) stored.record.right.push_back(right == '1' ? 1 : 0);
      if (policy == 0) turns = stored.record.turns;
      if (stored.record.turns != turns) apart.insert(plan.policies[policy]);
      const std::string machine = described(stored.context);
      if (!contains(machines, machine)) machines.push_back(machine);
      if (results.records.empty()) merged.context = stored.context;
      results.summaries.try_emplace(plan.policies[policy], std::move(stored.summary));
      if (!stored.load_note.empty()) results.load_notes.insert(stored.load_note);
      results.records.push_back(std::move(stored.record));
    }
  }
  diagnostics.throw_if_any(ErrorKind::data);
  merged.report = comparison_report(plan, results, options.gates);
  if (machines.size() > 1) {
    merged.report.notes.push_back(
        fmt::format("trained by several machines: {}", fmt::join(machines, ", ")));
  }
  if (!apart.empty()) {
    merged.report.notes.push_back(
        fmt::format("{} did not train in turns with {} with every seed: step times of such seeds "
                    "are not compared",
                    fmt::join(apart, ", "),
                    plan.policies.front()));
  }
  merged.config = std::move(stored_plan.config);
  return merged;
}

}  // namespace halfstep::study
