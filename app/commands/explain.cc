#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>

#include "comm/communicator.h"
#include "command.h"
#include "core/ranges.h"
#include "explain_graph_file.h"
#include "explain_passes.h"
#include "open_device.h"
#include "report/explain_report.h"
#include "report/run_files.h"
#include "study/policy_list.h"
#include "used_run.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

struct ExplainFlags {
  RunOptions run;
  GraphFileFlags graph;
  PassFlags passes;
  std::string format = "table";
  std::string arch;
  int ranks = 1;
  std::vector<std::string> diff;
};

/// The hardware to explain a config for: this machine, or the one that --arch names.
struct Hardware {
  backend::Backend backend;
  std::string gpu;  ///< "sm_70"; "" on the CPU
};

/// The training step of a config, or of its variant by `word`, compiled.
train::Session compile(const LoadedConfig& loaded,
                       const data::Dataset& dataset,
                       const Hardware& hardware,
                       const PassFlags& passes,
                       const std::string& word = "") {
  config::RunSpec spec =
      word.empty() ? loaded.spec : study::make_variant(loaded.spec, word, "--diff").spec;
  // The default target on a GPU is float16.
  if (!hardware.gpu.empty() && !spec.precision.target) spec.precision.target = DType::float16;
  train::Session session(spec, dataset, hardware.backend, nn::Purpose::train, passes.skipped());
  // The explanation lists the warnings as hints.
  refuse_warnings(session.warnings());
  return session;
}

/// With `arch`, kernels are chosen as for that processor or GPU. The step is that of the first of
/// `ranks`.
Hardware hardware(const config::RunSpec& spec, const std::string& arch, int ranks) {
  config::RunSpec opened = spec;
  // The hardware of --arch need not be present.
  if (!arch.empty()) opened.device.kind = config::DeviceKind::cpu;
  Hardware hardware{open_device(opened), ""};
  if (ranks > 1) hardware.backend.capabilities.ranks = comm::simulated_ranks(ranks);
  if (arch.empty()) return hardware;
  if (analysis::is_known_gpu(arch)) {
    hardware.gpu = arch;
  } else if (const auto isa = backend::isa_named(arch)) {
    hardware.backend.capabilities.isa = *isa;
    hardware.backend.capabilities.costs = nullptr;
  } else {
    std::vector<std::string> sets = backend::isa_names({.isa = backend::Isa::amx});
    sets.insert(sets.begin(), std::string(name(backend::Isa::baseline)));
    analysis::refuse_arch(arch, std::move(sets));
  }
  return hardware;
}

int explain_config(const ExplainFlags& state) {
  apply_logging(state.run);
  check(state.passes);
  const UsedRun used = load_used_run(state.run, "");
  const LoadedConfig& loaded = used.config;
  const Hardware machine = hardware(loaded.spec, state.arch, state.ranks);
  const data::Dataset dataset = shapes_of(used);
  const bool json = state.run.json || state.format == "json";
  if (state.format == "dot" && (state.run.json || !state.diff.empty() || state.passes.given())) {
    const char* other = state.run.json ? "--json" : state.diff.empty() ? "--passes" : "--diff";
    throw UserError(ErrorKind::config,
                    {"--format", 0, 0, ""},
                    fmt::format("{} cannot be printed as dot", other));
  }
  if (!state.diff.empty()) {
    refuse_precision_flags(state.run, "--diff");
    const std::string &left = state.diff[0], &right = state.diff[1];
    const auto explain_variant = [&](const std::string& word) {
      train::Session session = compile(loaded, dataset, machine, state.passes, word);
      return analysis::explain(session, machine.gpu);
    };
    const analysis::Explanation a = explain_variant(left);
    const analysis::Explanation b = explain_variant(right);
    const report::Json difference = to_json(report::explain_diff(a, b, left, right));
    keep_report(state.run, report::k_explain_file, difference);
    fmt::print("{}", json ? report::dump(difference) : report::diff_table(a, b, left, right));
    return 0;
  }
  train::Session session = compile(loaded, dataset, machine, state.passes);
  const bool verbose = state.run.verbosity > 0;
  if (state.passes.given()) {
    explain_passes(session, machine.gpu, state.passes, state.run, json);
    return 0;
  }
  const report::ExplainReport e = report::explain_report(session, machine.gpu);
  keep_report(state.run, report::k_explain_file, report::to_json(e));
  fmt::print("{}",
             json                    ? report::dump(report::to_json(e))
             : state.format == "dot" ? report::to_dot(e, verbose)
                                     : report::to_table(e, verbose));
  return 0;
}

/// Rejects flags that apply to configs together with --graph, which needs no config.
void refuse_config_flags(const std::vector<std::string>& given) {
  static constexpr std::array<std::string_view, 14> k_fitting{"--graph",
                                                              "--mode",
                                                              "--level",
                                                              "--arch",
                                                              "--cuda-version",
                                                              "--cudnn-version",
                                                              "--tensorflow",
                                                              "--format",
                                                              "--json",
                                                              "--set",
                                                              "--set-str",
                                                              "--color",
                                                              "--quiet",
                                                              "--log-file"};
  Diagnostics diagnostics;
  for (const std::string& flag : given) {
    if (contains(k_fitting, flag)) continue;
    diagnostics.error({flag, 0, 0, ""}, "does not apply with --graph");
  }
  diagnostics.throw_if_any();
}

std::function<int()> declare_explain(CLI::App& command) {
  const auto state = std::make_shared<ExplainFlags>();
  declare(command, state->run, {.json = true, .run_dir = true, .strict = true});
  command.get_option("--config")->description("YAML config, a later one wins, or a run directory");
  command.add_option("--format", state->format, "table, json or dot")
      ->check(CLI::IsMember({"table", "json", "dot"}));
  command.add_option("--arch",
                     state->arch,
                     "explain for this hardware: avx2, avx512, avx512_bf16, amx, sm_70, ...");
  command
      .add_option("--ranks",
                  state->ranks,
                  "explain a step of so many ranks, with their messages (mpirun -np)")
      ->check(CLI::Range(1, 4096));
  CLI::Option* diff =
      command
          .add_option(
              "--diff", state->diff, "two policies (or rewrite:float16) to compare op by op")
          ->expected(2);
  command.add_option("--tensorflow",
                     state->run.tensorflow,
                     "the release whose rules the rewrite follows: 2.19 or 2.20+, which converts "
                     "infer ops right after converted ones in every mode");
  declare(command, state->passes);
  for (const char* flag : {"--passes", "--dump-after"}) {
    command.get_option(flag)->excludes(diff);
  }
  declare(command, state->graph);
  return [state, &command] {
    if (!state->graph.path.empty()) {
      std::vector<std::string> given;
      for (const CLI::Option* option : command.get_options()) {
        // HALFSTEP_RUN_DIR counts as well, but applies to all commands.
        if (option->count() > 0 && option->get_name() != "--run-dir") {
          given.push_back(option->get_name());
        }
      }
      refuse_config_flags(given);
      apply_logging(state->run);
      state->graph.arch = state->arch;
      state->graph.format = state->run.json ? "json" : state->format;
      state->graph.settings = state->run.settings;
      if (state->run.tensorflow) {
        state->graph.settings.push_back({config::Override::Kind::set,
                                         std::string(k_rewrite_rules),
                                         *state->run.tensorflow,
                                         "--tensorflow"});
      }
      return explain_graph_file(state->graph);
    }
    if (state->run.configs.empty()) {
      throw UserError(ErrorKind::config, {}, "explain needs a CONFIG or --graph FILE");
    }
    return explain_config(*state);
  };
}

}  // namespace

extern const Command k_explain{"explain", "which dtype each op got, and why", declare_explain};

}  // namespace halfstep::app
