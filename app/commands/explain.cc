#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command.h"
#include "explain_graph_file.h"
#include "open_device.h"
#include "report/explain_diff.h"
#include "report/explain_dot.h"
#include "report/explain_report.h"
#include "report/explain_table.h"
#include "report/matrix_unit.h"
#include "run_options.h"
#include "study/policy_words.h"

namespace halfstep::app {
namespace {

struct State {
  RunOptions run;
  GraphFileFlags graph;
  std::string format = "table";
  std::string arch;
  std::vector<std::string> diff;
};

/// What a config is explained on: the machine there is, or the one that --arch pretends.
struct Hardware {
  backend::Backend backend;
  std::string gpu;  ///< "sm_70"; "" on the CPU
};

report::Explanation explain(const LoadedConfig& loaded,
                            const data::Dataset& dataset,
                            const Hardware& hardware,
                            const std::string& word) {
  config::RunSpec spec =
      word.empty() ? loaded.spec : study::make_variant(loaded.spec, word, "--diff").spec;
  // A GPU's own target is float16.
  if (!hardware.gpu.empty() && !spec.precision.target) spec.precision.target = DType::float16;
  train::Session session(spec, dataset, hardware.backend);
  return report::explain(session, hardware.gpu);
}

/// With `arch`, kernels are chosen as if the processor were another one.
Hardware hardware(const config::RunSpec& spec, const std::string& arch) {
  Hardware hardware{open_device(spec), ""};
  if (arch.empty()) return hardware;
  if (report::is_gpu(arch)) {
    hardware.gpu = arch;
  } else if (const auto isa = backend::isa_named(arch)) {
    hardware.backend.capabilities.isa = *isa;
    hardware.backend.capabilities.costs = nullptr;
  } else {
    const std::vector<std::string> known{
        "baseline", "avx2", "avx512", "avx512_bf16", "amx", "sm_70", "sm_80", "sm_90"};
    const std::string nearest = did_you_mean(arch, known);
    throw UserError(ErrorKind::config,
                    {"--arch", 0, 0, ""},
                    fmt::format("unknown architecture '{}'", arch),
                    nearest.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : nearest);
  }
  return hardware;
}

int explain_config(const State& state) {
  apply_logging(state.run);
  const LoadedConfig loaded = load_config(state.run);
  const Hardware machine = hardware(loaded.spec, state.arch);
  const data::Dataset dataset = load_data(loaded);
  const bool json = state.run.json || state.format == "json";
  if (!state.diff.empty()) {
    const std::string &left = state.diff[0], &right = state.diff[1];
    const report::Explanation a = explain(loaded, dataset, machine, left);
    const report::Explanation b = explain(loaded, dataset, machine, right);
    fmt::print("{}",
               json ? report::dump(report::diff_json(a, b, left, right))
                    : report::diff_table(a, b, left, right));
    return 0;
  }
  const report::Explanation e = explain(loaded, dataset, machine, "");
  const bool verbose = state.run.verbosity > 0;
  fmt::print("{}",
             json                    ? report::dump(report::to_json(e))
             : state.format == "dot" ? report::to_dot(e, verbose)
                                     : report::to_table(e, verbose));
  return 0;
}

std::function<int()> declare_explain(CLI::App& command) {
  const auto state = std::make_shared<State>();
  declare(command, state->run, {});
  command.get_option("--config")->required(false);
  command.add_option("--format", state->format, "table, json or dot")
      ->check(CLI::IsMember({"table", "json", "dot"}));
  command.add_option(
      "--arch", state->arch, "pretend this hardware: avx2, avx512, avx512_bf16, amx, sm_70, ...");
  command
      .add_option("--diff", state->diff, "two policies (or rewrite:float16) to compare op by op")
      ->expected(2);
  declare(command, state->graph);
  return [state] {
    if (!state->graph.path.empty()) {
      state->graph.arch = state->arch;
      state->graph.format = state->run.json ? "json" : state->format;
      state->graph.settings = state->run.settings;
      return explain_graph_file(state->graph);
    }
    if (state->run.configs.empty()) {
      throw UserError(ErrorKind::config, {}, "explain needs a CONFIG or --graph FILE");
    }
    return explain_config(*state);
  };
}

}  // namespace

const Command k_explain{"explain", "which dtype each op got, and why", declare_explain};

}  // namespace halfstep::app
