#include "explain_passes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "backend/cuda/rows.h"
#include "core/files.h"
#include "graph/text.h"
#include "plan/pipeline.h"
#include "report/json.h"
#include "report/matrix_unit.h"

namespace halfstep::app {
namespace {

using report::Json;

constexpr std::string_view k_all = "all";

/// A pass as it ran on the step.
struct PassRow {
  const plan::Pass* pass = nullptr;
  int before = 0, after = 0;
  bool changed = false, skipped = false;
  std::optional<std::string> graph;  ///< its text form, where --dump-after asks for it
};

std::string_view outcome(const PassRow& row) {
  return row.skipped ? "skipped" : row.changed ? "changed" : "unchanged";
}

bool dumps(const PassFlags& flags, std::string_view name) {
  return std::any_of(flags.dump_after.begin(), flags.dump_after.end(), [&](const auto& wanted) {
    return wanted == k_all || wanted == name;
  });
}

std::vector<PassRow> run_passes(const train::Session& session,
                                const std::string& gpu,
                                const PassFlags& flags) {
  std::vector<PassRow> rows;
  plan::Lowering lowering = session.lowering();
  lowering.passes.observer = [&](const plan::PassRun& run) {
    PassRow row{&run.pass, run.nodes_before, run.graph.size(), run.changed, run.skipped, {}};
    if (dumps(flags, run.pass.name)) row.graph = graph::print_graph(run.graph);
    rows.push_back(std::move(row));
  };
  const plan::Prepared step = plan::build_step(session.step_spec(),
                                               session.data_shape(),
                                               session.spec().training.batch_size,
                                               nn::Purpose::train,
                                               session.spec(),
                                               lowering.passes);
  if (gpu.empty()) {
    plan::lower(step.graph, session.backend(), lowering);
  } else {
    plan::lower(step.graph, backend::cuda::pretend(report::compute_capability(gpu)), lowering);
  }
  return rows;
}

Json to_json(const std::vector<PassRow>& rows, bool with_graphs) {
  Json passes = Json::array();
  for (const PassRow& row : rows) {
    Json entry{{"name", row.pass->name},
               {"stage", name(row.pass->stage())},
               {"outcome", outcome(row)},
               {"nodes_before", row.before},
               {"nodes_after", row.after},
               {"hides_values", row.pass->hides_values},
               {"exact", row.pass->exact},
               {"required", !row.pass->required.empty()},
               {"reason", row.pass->reason}};
    if (with_graphs && row.graph) entry["graph"] = *row.graph;
    passes.push_back(std::move(entry));
  }
  return {{"schema_version", 1}, {"kind", "passes"}, {"passes", std::move(passes)}};
}

std::string to_table(const std::vector<PassRow>& rows, bool verbose) {
  std::string text = fmt::format("{:<26}{:<11}{:<15}{}\n", "pass", "stage", "nodes", "graph");
  for (const PassRow& row : rows) {
    const std::string nodes = row.before == row.after
                                  ? std::to_string(row.before)
                                  : fmt::format("{} -> {}", row.before, row.after);
    text += fmt::format(
        "{:<26}{:<11}{:<15}{}\n", row.pass->name, name(row.pass->stage()), nodes, outcome(row));
    if (verbose) text += fmt::format("    {}\n", row.pass->reason);
  }
  return text;
}

/// DIR/07-fuse_norms.txt, numbered in the order of the passes.
void write_dumps(const std::vector<PassRow>& rows, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].graph) continue;
    write_file_atomically(fmt::format("{}/{:02}-{}.txt", folder, i + 1, rows[i].pass->name),
                          *rows[i].graph);
  }
}

}  // namespace

void declare(CLI::App& command, PassFlags& flags) {
  command.add_flag(
      "--passes", flags.list, "the compiler's passes and what each did to the training step");
  CLI::Option* dump =
      command
          .add_option("--dump-after",
                      flags.dump_after,
                      "print the graph as text after this pass of --passes; all: after each")
          ->allow_extra_args(false);
  command.add_option("--dump-dir", flags.dump_dir, "write those graphs to files in this folder")
      ->needs(dump);
  command.add_option("--skip-pass", flags.skip, "leave this pass of --passes out")
      ->allow_extra_args(false);
}

void check(const PassFlags& flags) {
  for (const std::string& name : flags.dump_after) {
    if (name != k_all) plan::pass_named(name, {"--dump-after", 0, 0, ""});
  }
  plan::check_skippable(flags.skipped(), {"--skip-pass", 0, 0, ""});
}

void explain_passes(const train::Session& session,
                    const std::string& gpu,
                    const PassFlags& flags,
                    bool json,
                    bool verbose) {
  const std::vector<PassRow> rows = run_passes(session, gpu, flags);
  const bool print_graphs = flags.dump_dir.empty();
  if (!print_graphs) write_dumps(rows, flags.dump_dir);
  if (json) {
    fmt::print("{}", report::dump(to_json(rows, print_graphs)));
    return;
  }
  if (flags.list) fmt::print("{}", to_table(rows, verbose));
  if (!print_graphs) return;
  for (const PassRow& row : rows) {
    if (row.graph) fmt::print("# after {}\n{}", row.pass->name, *row.graph);
  }
}

}  // namespace halfstep::app
