#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "core/error.h"
#include "core/log.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "core/system.h"
#include "number_flags.h"
#include "report/diff.h"
#include "report/prune_runs.h"
#include "report/run_dir.h"
#include "report/run_list.h"
#include "report/tables.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

struct RunsFlags {
  std::string folder{report::k_runs_folder};
  std::vector<std::string> states, policies, kinds;
  std::string sort = "date", metric, run, a, b;
  std::optional<std::int64_t> keep;
  std::optional<double> older_than;
  bool yes = false;
  bool json = false;
};

std::vector<report::RunState> run_states(const RunsFlags& state) {
  return mapped<report::RunState>(state.states, [&](const std::string& word) {
    return report::run_state_named(word, "--state");
  });
}

/// The runs of the folder; reports subfolders that are no runs.
report::RunIndex find_runs(const RunsFlags& state) {
  report::RunIndex index = report::find_runs(state.folder);
  for (const std::string& folder : index.foreign) {
    log_info("{}: contains no run, skipped", printable(folder));
  }
  return index;
}

/// The runs selected by --state, --policy and --kind.
std::vector<report::RunEntry> chosen_runs(const RunsFlags& state, const report::RunIndex& index) {
  const report::RunFilter filter{run_states(state), state.policies, state.kinds};
  report::check(filter, index);
  return report::chosen_runs(index, filter);
}

int list(const RunsFlags& state) {
  const report::RunIndex index = find_runs(state);
  std::vector<report::RunEntry> runs = chosen_runs(state, index);
  report::sort_runs(runs, state.sort);
  if (state.json) {
    fmt::print("{}", report::dump(to_json(report::runs_report(index, runs))));
  } else if (runs.empty()) {
    print_line("no runs in {}", index.folder);
  } else {
    fmt::print("{}", report::runs_table(runs));
  }
  return 0;
}

/// Warns of runs whose step times are not comparable, because their steps do other work.
void warn_of_other_work(const report::BestRunReport& best,
                        const std::vector<report::RunEntry>& runs) {
  std::vector<std::string> others;
  for (const report::RunEntry& run : runs) {
    if (!run.step_time || run.path == best.run.path) continue;
    if (!report::same_step(best.run.path, run.path)) others.push_back(printable(run.name));
  }
  if (others.empty()) return;
  log_warning(
      "model, data or batch size differ from {}'s, so that step times are not comparable: {}",
      printable(best.run.name),
      fmt::join(others, ", "));
}

int best(RunsFlags state) {
  const report::RunIndex index = find_runs(state);
  if (state.states.empty()) state.states = {std::string(name(report::RunState::completed))};
  std::vector<report::RunEntry> runs = chosen_runs(state, index);
  const std::string kind = report::kind_to_choose_from(runs);
  const std::size_t others =
      std::erase_if(runs, [&](const report::RunEntry& run) { return run.kind != kind; });
  if (others > 0) {
    log_info("{} run{} of other kinds skipped: --kind chooses one of {}",
             others,
             others == 1 ? "" : "s",
             fmt::join(report::run_kinds(), ", "));
  }
  if (runs.empty()) {
    throw UserError(ErrorKind::data,
                    {state.folder, 0, 0, ""},
                    "contains no run of the selected states, kinds and policies",
                    "without --state only completed runs are");
  }
  const report::BestRunReport found = report::best_run(index, runs, state.metric, state.policies);
  if (found.metric == report::k_step_time_metric) warn_of_other_work(found, runs);
  if (state.json) {
    fmt::print("{}", report::dump(to_json(found)));
    return 0;
  }
  fmt::print("{}\n", report::runs_table({found.run}));
  print_line("{}: {}", found.run.path, report::best_run_text(found));
  return 0;
}

int show(const RunsFlags& state) {
  const report::RunIndex index = report::find_runs(state.folder);
  const report::RunEntry& run = report::resolve_run(index, state.run);
  // A run in its first epoch has no report yet; its other files are shown.
  if (run.status.empty()) {
    fmt::print("{}",
               state.json ? report::dump(to_json(report::runs_report(index, {run})))
                          : report::runs_table({run}));
    return 0;
  }
  const report::Document document = report::read_valid_report(run.path);
  fmt::print("{}", state.json ? report::dump(document.json) : report::show(document));
  return 0;
}

/// The report of a run. Errors: UserError(data) for one that has none yet.
report::AnyReport report_of(const report::RunEntry& run) {
  if (run.status.empty()) {
    throw UserError(ErrorKind::data, {run.path, 0, 0, ""}, "has no report yet");
  }
  return report::read_valid_report(run.path).report;
}

int diff(const RunsFlags& state) {
  const report::RunIndex index = report::find_runs(state.folder);
  const report::RunEntry& a = report::resolve_run(index, state.a);
  const report::RunEntry& b = report::resolve_run(index, state.b);
  report::DiffReport found = report::diff(report_of(a), a.path, report_of(b), b.path);
  found.config = report::setting_rows(a.path, b.path);
  if (state.json) {
    fmt::print("{}", report::dump(to_json(found)));
  } else {
    fmt::print("{}\n{}", report::show_diff(found, a.name, b.name), report::side_by_side(a, b));
  }
  return 0;
}

int prune(const RunsFlags& state) {
  const report::PruneRules rules{state.keep, state.older_than, run_states(state)};
  if (!rules.any()) {
    throw UserError(
        ErrorKind::config,
        {"prune", 0, 0, ""},
        "needs a rule that selects the runs to remove: --keep, --older-than or --state");
  }
  const report::RunIndex index = find_runs(state);
  report::PrunePlan plan = report::plan_prune(index, rules, utc_now());
  if (state.yes) report::prune(plan);
  fmt::print("{}",
             state.json ? report::dump(to_json(report::prune_report(plan, state.yes)))
                        : report::prune_text(plan, state.yes));
  return 0;
}

/// Adds the flags that all commands on a folder of runs share.
CLI::App* add(CLI::App& command, RunsFlags& state, const char* name, const char* doc) {
  CLI::App* sub = command.add_subcommand(name, doc);
  sub->add_option("--dir", state.folder, "the folder that holds the runs; default: runs");
  sub->add_flag("--json", state.json, "print JSON");
  return sub;
}

void add_states(CLI::App* command, RunsFlags& state, const char* doc) {
  command->add_option("--state", state.states, doc)->allow_extra_args(false);
}

std::function<int()> declare_runs(CLI::App& command) {
  const auto state = std::make_shared<RunsFlags>();
  command.require_subcommand(1);
  constexpr const char* k_states = "running, completed, failed, interrupted or damaged";
  CLI::App* list_command =
      add(command, *state, "list", "a line per run: state, policy, metric, step time, date");
  list_command->add_option(
      "--sort",
      state->sort,
      fmt::format("{}: the newest and the best come first", fmt::join(report::sort_keys(), ", ")));
  CLI::App* best_command =
      add(command, *state, "best", "the best training run, comparison or benchmark");
  best_command->add_option("--metric",
                           state->metric,
                           "val_accuracy, test_loss, step_time, speedup, ...; default: the newest "
                           "run's main metric, of benchmarks step_time");
  for (CLI::App* chooser : {list_command, best_command}) {
    add_states(chooser, *state, k_states);
    chooser
        ->add_option(
            "--kind", state->kinds, fmt::format("{}", fmt::join(report::run_kinds(), ", ")))
        ->allow_extra_args(false);
  }
  list_command->add_option("--policy", state->policies, "runs of this precision policy")
      ->allow_extra_args(false);
  best_command
      ->add_option("--policy",
                   state->policies,
                   "by this policy's values; default: a comparison's baseline, a benchmark's first")
      ->allow_extra_args(false);
  CLI::App* show_command = add(command, *state, "show", "show the result of a run, as text");
  show_command
      ->add_option("RUN", state->run, "name in the folder, its last part, or a folder's newest")
      ->required();
  CLI::App* diff_command =
      add(command, *state, "diff", "settings and results of two runs of one kind");
  diff_command->add_option("A", state->a, "a run, as for show")->required();
  diff_command->add_option("B", state->b, "a run, as for show")->required();
  CLI::App* prune_command =
      add(command,
          *state,
          "prune",
          "remove the runs that all rules given select; shows them by default");
  add_integer(
      *prune_command, "--keep", state->keep, {}, "rule: all but the N newest runs of each name");
  add_time(*prune_command,
           "--older-than",
           state->older_than,
           "days",
           "rule: runs that ended so many days ago");
  add_states(prune_command, *state, "rule: runs in this state");
  prune_command->add_flag("--yes", state->yes, "remove them");
  return [=] {
    if (list_command->parsed()) return list(*state);
    if (best_command->parsed()) return best(*state);
    if (show_command->parsed()) return show(*state);
    if (diff_command->parsed()) return diff(*state);
    return prune(*state);
  };
}

}  // namespace

extern const Command k_runs{"runs", "list, compare and remove the runs in a folder", declare_runs};

}  // namespace halfstep::app
