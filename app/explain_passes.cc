#include "explain_passes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "analysis/processor.h"
#include "backend/cuda/kernel_table.h"
#include "core/files.h"
#include "graph/text.h"
#include "plan/pipeline.h"
#include "report/json.h"
#include "report/passes_report.h"
#include "report/run_files.h"
#include "used_run.h"

namespace halfstep::app {
namespace {

constexpr std::string_view k_all = "all";

bool dumps(const PassFlags& flags, std::string_view name) {
  return std::ranges::any_of(flags.dump_after,
                             [&](const auto& wanted) { return wanted == k_all || wanted == name; });
}

report::PassesReport run_passes(const train::Session& session,
                                const std::string& gpu,
                                const PassFlags& flags) {
  report::PassesReport report;
  plan::Lowering lowering = session.lowering();
  lowering.passes.observer = [&](const plan::PassRun& run) {
    report::PassBlock& pass = report.passes.emplace_back(report::pass_block(run));
    if (dumps(flags, run.pass.name)) pass.graph = graph::print_graph(run.graph);
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
    plan::lower(step.graph, backend::cuda::absent_gpu(analysis::compute_capability(gpu)), lowering);
  }
  return report;
}

std::string to_table(const report::PassesReport& report, bool verbose) {
  std::string text = fmt::format("{:<26}{:<11}{:<15}{}\n", "pass", "stage", "nodes", "graph");
  for (const report::PassBlock& pass : report.passes) {
    const std::string nodes = pass.nodes_before == pass.nodes_after
                                  ? std::to_string(pass.nodes_before)
                                  : fmt::format("{} -> {}", pass.nodes_before, pass.nodes_after);
    text += fmt::format("{:<26}{:<11}{:<15}{}\n", pass.name, pass.stage, nodes, pass.outcome);
    if (verbose) text += fmt::format("    {}\n", pass.reason);
  }
  return text;
}

/// DIR/07-fuse_norms.txt, numbered in the order of the passes; their texts leave the report.
void write_dumps(report::PassesReport& report, const std::string& folder) {
  make_folder(folder);
  int number = 0;
  for (report::PassBlock& pass : report.passes) {
    ++number;
    if (!pass.graph) continue;
    write_file_atomically(fmt::format("{}/{:02}-{}.txt", folder, number, pass.name), *pass.graph);
    pass.graph.reset();
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
                    const RunOptions& run,
                    bool json) {
  report::PassesReport report = run_passes(session, gpu, flags);
  if (!flags.dump_dir.empty()) write_dumps(report, flags.dump_dir);
  keep_report(run, report::k_explain_file, to_json(report));
  if (json) {
    fmt::print("{}", report::dump(to_json(report)));
    return;
  }
  if (flags.list) fmt::print("{}", to_table(report, run.verbosity > 0));
  for (const report::PassBlock& pass : report.passes) {
    if (pass.graph) fmt::print("# after {}\n{}", pass.name, *pass.graph);
  }
}

}  // namespace halfstep::app
