#include "report/run_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "core/error.h"
#include "core/ranges.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> k_states{
    "running", "completed", "failed", "interrupted", "damaged"};

/// A study keeps nothing that it could be resumed from, and finished runs may be put side by side
/// although one of them diverged.
constexpr std::array k_endings{
    Ending{"running",
           RunState::interrupted,
           {k_null_code, k_null_code},
           {k_no_code, k_no_code, k_no_code}},
    Ending{"completed", RunState::completed, {0, 5}, {0, 5, k_no_code}},
    Ending{"target_reached", RunState::completed, {0, 0}, {k_no_code, k_no_code, k_no_code}},
    Ending{"stopped_early", RunState::completed, {0, 5}, {k_no_code, k_no_code, k_no_code}},
    Ending{"interrupted", RunState::interrupted, {130, 130}, {130, k_no_code, k_no_code}},
    Ending{"preempted", RunState::interrupted, {75, 75}, {143, k_no_code, k_no_code}},
    Ending{"diverged", RunState::failed, {4, 4}, {4, 0, 5}},
    Ending{"rank_lost", RunState::interrupted, {8, 8}, {k_no_code, k_no_code, k_no_code}}};

constexpr bool ends_studies(const Ending& ending) { return ending.study[0] != k_no_code; }

template <std::size_t N, class Use>
constexpr std::array<std::string_view, N> statuses(Use use) {
  std::array<std::string_view, N> found;
  std::size_t count = 0;
  for (const Ending& ending : k_endings) {
    if (use(ending)) found[count++] = ending.status;
  }
  return found;
}

constexpr auto k_run_statuses = statuses<k_endings.size()>([](const Ending&) { return true; });
constexpr auto k_study_statuses =
    statuses<std::ranges::count_if(k_endings, ends_studies)>(ends_studies);

/// Folders between the searched one and a run: runs/<group>/<name>/<run>.
constexpr int k_max_levels = 3;

/// The content of a folder without hidden files and links.
struct Listing {
  std::vector<fs::path> folders;  ///< sorted
  std::vector<std::string> leftovers;
  bool empty = true;
};

/// Empty for a folder that cannot be read.
Listing list_folder(const fs::path& directory) {
  Listing listing;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const fs::file_type type = entry.symlink_status(error).type();
    const std::string name = entry.path().filename().string();
    if (type == fs::file_type::directory && name.starts_with(k_removed_prefix)) {
      listing.leftovers.push_back(entry.path().string());
    }
    if (name.starts_with(".") || type == fs::file_type::symlink) continue;
    listing.empty = false;
    if (type == fs::file_type::directory) listing.folders.push_back(entry.path());
  }
  std::ranges::sort(listing.folders);
  return listing;
}

enum class Content { nothing, foreign, runs };

/// Adds the runs in a folder that is no run itself, and the outermost folders without runs next to
/// them. A directory that was locked but has no files of a run yet is ignored.
Content search(const fs::path& directory, int levels, RunIndex& index) {
  const Listing listing = list_folder(directory);
  index.leftovers.insert(index.leftovers.end(), listing.leftovers.begin(), listing.leftovers.end());
  Content content = !listing.leftovers.empty() ? Content::runs
                    : listing.empty            ? Content::nothing
                                               : Content::foreign;
  std::vector<std::string> foreign;
  for (const fs::path& folder : listing.folders) {
    Content inside = Content::foreign;
    if (looks_like_run(folder)) {
      index.runs.push_back(
          read_run_entry(folder, folder.lexically_relative(index.folder).string()));
      inside = Content::runs;
    } else if (levels > 1) {
      inside = search(folder, levels - 1, index);
    }
    if (inside == Content::runs) content = Content::runs;
    if (inside == Content::foreign) foreign.push_back(folder.string());
  }
  if (content == Content::runs || levels == k_max_levels) {
    index.foreign.insert(index.foreign.end(), foreign.begin(), foreign.end());
  }
  return content;
}

bool newer(const RunEntry* a, const RunEntry* b) {
  return std::tie(a->started_at, a->name) > std::tie(b->started_at, b->name);
}

}  // namespace

std::span<const std::string_view> names_of(RunState) { return k_states; }
std::string_view name(RunState state) { return k_states[static_cast<std::size_t>(state)]; }

const Ending& ending_named(std::string_view status) {
  const auto* found = std::ranges::find(k_endings, status, &Ending::status);
  require(found != k_endings.end(), "no run ends as {}", status);
  return *found;
}

const Ending& ending_of(train::Status status) {
  return ending_named(train::names_of(status)[static_cast<std::size_t>(status)]);
}

std::span<const std::string_view> run_statuses() { return k_run_statuses; }
std::span<const std::string_view> study_statuses() { return k_study_statuses; }

RunState run_state_named(std::string_view word, const std::string& flag) {
  const std::span<const std::string_view> states = names_of(RunState());
  const auto found = std::ranges::find(states, word);
  if (found != states.end()) return static_cast<RunState>(found - states.begin());
  throw UserError(ErrorKind::config,
                  {flag, 0, 0, ""},
                  fmt::format("unknown state '{}'", word),
                  choices(word, {states.begin(), states.end()}));
}

std::optional<double> RunEntry::value() const {
  const auto it = metrics.find(metric);
  return it == metrics.end() ? std::nullopt : std::optional(it->second);
}

const PolicyResult* RunEntry::result(std::string_view policy) const {
  return find_or_null(results, policy, &PolicyResult::policy);
}

void PolicyResult::fields(Fields& f) {
  f("policy", policy, "requested precision");
  f("metrics", metrics, {.doc = "by the name with the split", .each = "mean over the seeds"});
  f("step_time_ms", step_time, "ms; median");
  f("speedup", speedup, "over the baseline of a comparison or a benchmark's first policy");
}

void RunEntry::fields(Fields& f) {
  std::optional<double> main_value = value();
  f("name", name, "path below the folder");
  f("directory", path, "of the run, from the working directory");
  f.text_or_null("kind", kind, "train, compare or bench; null where no file says");
  f("state", state, "state of the run");
  f.text_or_null("status", status, "of its report; null without one");
  f.text_or_null("note", note, "why it is damaged, or how its state was determined");
  f("policies",
    policies,
    {.doc = "several of a comparison or benchmark, and of a run resumed under another",
     .each = "requested precision"});
  f("epochs", epochs, "whole ones done; null for benchmarks");
  f.text_or_null("metric", metric, "the main metric, by its name with the split");
  f("value", main_value, "of that metric");
  f("metrics",
    metrics,
    {.doc = "by the name with the split",
     .each = "after the last epoch; of a comparison the mean of its baseline"});
  f("step_time_ms",
    step_time,
    "ms; median, of a comparison its baseline's, of a benchmark its first policy's");
  f("results",
    results,
    {.doc = "of a comparison or benchmark, by policy", .each = "one policy", .optional = true});
  f.text_or_null("started_at", started_at, "UTC");
  f.text_or_null("ended_at", ended_at, "UTC; when the report was last written");
}

RunIndex find_runs(const std::string& folder) {
  std::error_code error;
  const fs::path root =
      fs::path(folder).has_filename() ? fs::path(folder) : fs::path(folder).parent_path();
  const bool is_folder = fs::is_directory(folder, error);
  if (!is_folder || looks_like_run(root)) {
    throw UserError(ErrorKind::data,
                    {folder, 0, 0, ""},
                    is_folder                   ? "is a run itself"
                    : fs::exists(folder, error) ? "is not a folder"
                                                : "there is no such folder",
                    "--dir names the folder that holds the runs");
  }
  RunIndex index;
  index.folder = root.string();
  search(root, k_max_levels, index);
  return index;
}

const RunEntry& resolve_run(const RunIndex& index, const std::string& word) {
  std::string path = fs::path(word).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  std::vector<const RunEntry*> inside, same;
  std::vector<std::string> names;
  for (const RunEntry& run : index.runs) {
    if (run.name == path || fs::equivalent(run.path, path, error)) return run;
    if (fs::path(run.name).filename() == path) same.push_back(&run);
    if (run.name.starts_with(path + "/") || path == ".") inside.push_back(&run);
    names.push_back(run.name);
    names.push_back(fs::path(run.name).filename().string());
    names.push_back(fs::path(run.name).parent_path().string());
  }
  if (same.size() == 1) return *same.front();
  if (same.size() > 1) {
    const auto these = mapped<std::string>(same, &RunEntry::name);
    throw UserError(ErrorKind::config,
                    {"RUN", 0, 0, ""},
                    fmt::format("'{}' matches several runs: {}", word, fmt::join(these, ", ")));
  }
  if (!inside.empty()) return **std::ranges::min_element(inside, newer);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::erase(names, "");
  const std::string hint = did_you_mean(word, names);
  throw UserError(ErrorKind::config,
                  {"RUN", 0, 0, ""},
                  fmt::format("{} holds no run '{}'", index.folder, word),
                  hint.empty() ? "'halfstep runs list' lists them" : hint);
}

}  // namespace halfstep::report
