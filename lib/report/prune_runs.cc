#include "report/prune_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/directory_lock.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "core/system.h"
#include "report/run_dir.h"
#include "report/run_files.h"
#include "report/run_index.h"
#include "report/run_list.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_prune(const std::string& path, const std::string& why) {
  throw UserError(ErrorKind::data, {path, 0, 0, ""}, why);
}

std::uint64_t bytes_in(const fs::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->symlink_status(error).type() != fs::file_type::regular) continue;
    const std::uintmax_t size = it->file_size(error);
    if (!error) bytes += size;
  }
  return bytes;
}

/// The reason a directory may not be removed, or "". The caller holds the lock.
std::string refusal(const fs::path& directory, bool complete) {
  if (complete && !is_run_directory(directory)) return "is not a complete run directory";
  std::vector<std::string> foreign;
  try {
    foreign = foreign_files(directory);
  } catch (const UserError& error) {
    return error.problems().front().message;
  }
  if (foreign.empty()) return "";
  const std::size_t more = foreign.size() - 1;
  return fmt::format("contains {}{}, which no run writes",
                     foreign.front(),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string group_of(const RunEntry& run) { return fs::path(run.path).parent_path().string(); }

/// Points a `latest` link to a removed run at the newest other training run next to it.
void release_latest(const fs::path& directory) {
  const fs::path link = directory.parent_path() / k_latest_link;
  std::error_code error;
  if (fs::read_symlink(link, error) != directory.filename() || error) return;
  std::optional<fs::path> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.parent_path(), error)) {
    const fs::path name = entry.path().filename();
    if (entry.symlink_status(error).type() != fs::file_type::directory ||
        name == directory.filename() || name.string().starts_with(".") ||
        !is_run_directory(entry.path()) || read_run_entry(entry.path(), "").kind != "train") {
      continue;
    }
    // Names begin with the start time of the run.
    if (!newest || name > *newest) newest = name;
  }
  if (!newest) {
    fs::remove(link, error);
    return;
  }
  link_latest(directory.parent_path() / *newest);
}

void remove_run(const fs::path& directory) {
  release_latest(directory);
  const fs::path renamed =
      directory.parent_path() / (std::string(k_removed_prefix) + directory.filename().string());
  std::error_code error;
  fs::rename(directory, renamed, error);
  if (error) fail_prune(directory.string(), "cannot be renamed: " + error.message());
  fs::remove_all(renamed, error);
  if (error) fail_prune(renamed.string(), "cannot be removed: " + error.message());
}

void remove_if_empty(const fs::path& folder, const std::string& root) {
  std::error_code error;
  if (folder != fs::path(root) && fs::is_empty(folder, error) && !error) fs::remove(folder, error);
}

/// The newest runs of each folder of runs, as many as are retained.
std::vector<std::string> newest(std::vector<RunEntry> runs, std::int64_t keep) {
  std::erase_if(runs, [](const RunEntry& run) { return run.state == RunState::damaged; });
  sort_runs(runs, "date");
  std::map<std::string, std::int64_t> counts;
  std::vector<std::string> retained;
  for (const RunEntry& run : runs) {
    if (counts[group_of(run)]++ < keep) retained.push_back(run.path);
  }
  return retained;
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::uint64_t PrunePlan::bytes() const {
  std::uint64_t sum = leftover_bytes;
  for (const PruneItem& item : items) sum += item.refusal.empty() ? item.bytes : 0;
  return sum;
}

std::int64_t PrunePlan::removals() const {
  return std::ranges::count_if(items, [](const PruneItem& item) { return item.refusal.empty(); });
}

PrunePlan plan_prune(const RunIndex& index, const PruneRules& rules, const std::string& now) {
  PrunePlan plan;
  plan.folder = index.folder;
  const std::vector<std::string> retained =
      rules.keep ? newest(index.runs, *rules.keep) : std::vector<std::string>{};
  constexpr double k_day = 86400;
  const std::optional<double> today = unix_seconds(now);
  for (const RunEntry& run : index.runs) {
    if (contains(retained, run.path)) continue;
    if (!rules.states.empty() && !contains(rules.states, run.state)) continue;
    if (run.state == RunState::damaged && !contains(rules.states, run.state)) continue;
    if (rules.older_than_days) {
      const std::optional<double> ended =
          unix_seconds(run.ended_at.empty() ? run.started_at : run.ended_at);
      // A run without a date is never old.
      if (!ended || !today || (*today - *ended) / k_day <= *rules.older_than_days) continue;
    }
    PruneItem item{run, bytes_in(run.path), ""};
    item.refusal =
        run.state == RunState::running ? "is used by a process" : refusal(run.path, true);
    plan.items.push_back(std::move(item));
  }
  std::ranges::stable_sort(
      plan.items, [](const auto& a, const auto& b) { return a.run.started_at < b.run.started_at; });
  for (const std::string& leftover : index.leftovers) {
    if (!refusal(leftover, false).empty()) continue;
    plan.leftovers.push_back(leftover);
    plan.leftover_bytes += bytes_in(leftover);
  }
  return plan;
}

void prune(PrunePlan& plan) {
  for (PruneItem& item : plan.items) {
    if (!item.refusal.empty()) continue;
    const fs::path directory(item.run.path);
    std::optional<DirectoryLock> lock;
    try {
      lock.emplace(item.run.path);
    } catch (const UserError& error) {
      item.refusal = error.problems().front().message;
      continue;
    }
    item.refusal = refusal(directory, true);
    if (!item.refusal.empty()) continue;
    remove_run(directory);
    remove_if_empty(directory.parent_path(), plan.folder);
  }
  for (const std::string& leftover : plan.leftovers) {
    std::error_code error;
    fs::remove_all(leftover, error);
    if (error) fail_prune(leftover, "cannot be removed: " + error.message());
    remove_if_empty(fs::path(leftover).parent_path(), plan.folder);
  }
}

std::string prune_text(const PrunePlan& plan, bool done) {
  std::string text;
  const auto line = [&](std::string_view verb, const std::string& name, const std::string& why) {
    text += printable(fmt::format("{:<12} {}  {}", verb, name, why)) + "\n";
  };
  for (const PruneItem& item : plan.items) {
    const bool goes = item.refusal.empty();
    line(goes ? done ? "removed" : "would remove" : "kept",
         item.run.name,
         goes ? fmt::format("{}, {}, {}",
                            name(item.run.state),
                            item.run.started_at.empty() ? "no date" : item.run.started_at,
                            mebibytes(item.bytes))
              : item.refusal);
  }
  for (const std::string& leftover : plan.leftovers) {
    line(done ? "removed" : "would remove", leftover, "left by an interrupted prune");
  }
  const std::int64_t runs = plan.removals();
  if (runs == 0 && plan.leftovers.empty()) return text + "nothing to remove\n";
  text += fmt::format("{} run{}, {}\n", runs, runs == 1 ? "" : "s", mebibytes(plan.bytes()));
  if (!done) text += "nothing was removed; --yes removes them\n";
  return text;
}

PruneReport prune_report(const PrunePlan& plan, bool done) {
  PruneReport report;
  report.folder = plan.folder;
  report.dry_run = !done;
  for (const PruneItem& item : plan.items) {
    if (item.refusal.empty()) {
      report.removed.push_back({item.run, item.bytes});
    } else {
      report.kept.push_back({item.run, item.refusal});
    }
  }
  report.leftovers = plan.leftovers;
  report.bytes = plan.bytes();
  return report;
}

}  // namespace halfstep::report
