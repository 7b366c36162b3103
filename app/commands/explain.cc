#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>

#include "command.h"
#include "core/files.h"
#include "explain_graph_file.h"
#include "report/explain_report.h"
#include "run_options.h"
#include "training_run.h"

namespace halfstep::app {
namespace {

struct State {
  RunOptions run;
  GraphFileFlags graph;
  std::string format = "table";
  std::string arch;
  std::vector<std::string> diff;
};

/// One config under one policy; `word` is a policy or `rewrite:float16`, "" as the config says.
config::RunSpec under(config::RunSpec spec, const std::string& word) {
  if (word.empty()) return spec;
  constexpr std::string_view k_rewrite = "rewrite:";
  if (word.starts_with(k_rewrite)) {
    const auto target = dtype_named(word.substr(k_rewrite.size()));
    if (!target || !is_half(*target)) {
      throw UserError(ErrorKind::config,
                      {"--diff", 0, 0, ""},
                      fmt::format("'{}' is not a rewrite", word),
                      "rewrite:float16 or rewrite:bfloat16");
    }
    spec.precision.policy = "float32";
    spec.precision.rewrite = config::Rewrite::automatic;
    spec.precision.target = target;
    return spec;
  }
  const std::vector<std::string> known(config::k_policy_names.begin(),
                                       config::k_policy_names.end());
  if (precision::policy_named(word) == nullptr) {
    throw UserError(ErrorKind::config,
                    {"--diff", 0, 0, ""},
                    fmt::format("unknown policy '{}'", word),
                    did_you_mean(word, known));
  }
  spec.precision.policy = word;
  spec.precision.rewrite = config::Rewrite::none;
  return spec;
}

report::Explanation explain(const LoadedConfig& loaded,
                            const data::Dataset& dataset,
                            const backend::Backend& device,
                            const std::string& word) {
  train::Session session(under(loaded.spec, word), dataset, device);
  print_warnings(session.warnings());
  return report::explain(session);
}

/// `--arch`: kernels are chosen as if the processor were another one.
void pretend(backend::Backend& device, const std::string& arch) {
  if (arch.empty()) return;
  if (const auto isa = backend::isa_named(arch)) {
    device.capabilities.isa = *isa;
    return;
  }
  throw UserError(ErrorKind::config,
                  {"--arch", 0, 0, ""},
                  fmt::format("unknown architecture '{}'", arch),
                  "baseline, avx2, avx512, avx512_bf16 or amx; sm_70 and the like go with --graph");
}

int explain_config(const State& state) {
  apply_logging(state.run);
  const LoadedConfig loaded = load_config(state.run);
  backend::Backend device = open_device(loaded.spec);
  pretend(device, state.arch);
  const data::Dataset dataset = load_data(loaded);
  if (!state.diff.empty()) {
    const report::Explanation a = explain(loaded, dataset, device, state.diff[0]);
    const report::Explanation b = explain(loaded, dataset, device, state.diff[1]);
    fmt::print("{}",
               state.run.json ? report::dump(report::diff_json(a, b, state.diff[0], state.diff[1]))
                              : report::diff_table(a, b, state.diff[0], state.diff[1]));
    return 0;
  }
  const report::Explanation explanation = explain(loaded, dataset, device, "");
  if (state.run.json || state.format == "json") {
    fmt::print("{}", report::dump(report::to_json(explanation)));
  } else {
    fmt::print("{}",
               state.format == "dot" ? report::to_dot(explanation) : report::to_table(explanation));
  }
  return 0;
}

std::function<int()> declare_explain(CLI::App& command) {
  const auto state = std::make_shared<State>();
  declare(command, state->run, {});
  command.get_option("--config")->required(false);
  command.add_option("--format", state->format, "table, json or dot")
      ->check(CLI::IsMember({"table", "json", "dot"}));
  command.add_option(
      "--arch", state->arch, "pretend this hardware: avx2, avx512, amx; sm_70 with --graph");
  command
      .add_option("--diff", state->diff, "two policies (or rewrite:float16) to compare op by op")
      ->expected(2);
  declare(command, state->graph);
  return [state] {
    if (!state->graph.path.empty()) {
      state->graph.arch = state->arch;
      state->graph.format = state->run.json ? "json" : state->format;
      state->graph.set = state->run.set;
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
