#include "explain_graph_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <span>

#include "analysis/processor.h"
#include "config/reader.h"
#include "core/files.h"
#include "core/log.h"
#include "environment.h"
#include "number_flags.h"
#include "plan/prepare_graph.h"
#include "precision/graph_report.h"
#include "precision/tf_environment.h"
#include "precision/unscaling.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

/// The settings that apply without a config.
struct GraphSettings {
  struct Precision {
    config::ListEdits lists;
    config::RewriteRules rules = config::RewriteRules::tensorflow_2_19;
    void fields(config::Fields& f) {
      f.section("lists", lists, {.doc = "list edits"});
      config::rewrite_rules_field(f, rules);
    }
  };
  Precision precision;

  void fields(config::Fields& f) { f.section("precision", precision, {.doc = "list edits"}); }
};

config::PrecisionSpec settings(std::span<const config::Override> overrides) {
  Diagnostics diagnostics;
  config::Node node = config::Node::map({});
  for (const config::Override& change : overrides) config::apply(node, change, diagnostics);
  GraphSettings settings;
  config::read(node, settings, diagnostics);
  diagnostics.throw_if_any();
  config::PrecisionSpec spec;
  spec.lists = settings.precision.lists;
  spec.rewrite_rules = settings.precision.rules;
  return spec;
}

precision::RewriteOptions options(const GraphFileFlags& flags) {
  precision::RewriteOptions options;
  const precision::RewriteOptions edits =
      plan::rewrite_options(settings(flags.settings), {"--set", 0, 0, ""});
  options.edits = edits.edits;
  options.rules = edits.rules;
  for (const Problem& problem : precision::apply_tensorflow_variables(
           [](std::string_view name) { return environment(name); }, options)) {
    log_warning("{}: {}", to_string(problem.where), problem.message);
  }
  options.mode = *precision::mode_named(flags.mode);
  if (!flags.arch.empty() && !analysis::is_known_gpu(flags.arch))
    analysis::refuse_arch(flags.arch, {});
  if (!flags.arch.empty()) options.device.arch = flags.arch;
  if (flags.cuda_version) options.device.cuda_version = static_cast<int>(*flags.cuda_version);
  if (flags.cudnn_version) options.device.cudnn_version = static_cast<int>(*flags.cudnn_version);
  if (!flags.level.empty()) {
    const auto level = precision::level_named(flags.level);
    if (!level) {
      throw UserError(ErrorKind::config,
                      {"--level", 0, 0, ""},
                      fmt::format("unknown level '{}'", flags.level),
                      fmt::format("one of {}", fmt::join(precision::level_names(), ", ")));
    }
    options.level = *level;
  }
  return options;
}

}  // namespace

void declare(CLI::App& command, GraphFileFlags& flags) {
  CLI::Option* graph =
      command.add_option("--graph", flags.path, "an op-level graph to rewrite instead of a config");
  const auto modes = precision::names_of(precision::Mode());
  command.add_option("--mode", flags.mode, "of the rewrite")
      ->check(CLI::IsMember(std::vector<std::string>(modes.begin(), modes.end())))
      ->needs(graph);
  command
      .add_option(
          "--level", flags.level, "treat_infer_as_deny, tensor_cores_only or unsafe_force_all")
      ->needs(graph);
  constexpr Range k_versions{0, 999'999};
  add_integer(command, "--cuda-version", flags.cuda_version, k_versions, "9010 for CUDA 9.1")
      ->needs(graph);
  add_integer(command, "--cudnn-version", flags.cudnn_version, k_versions, "8000 for cuDNN 8.0")
      ->needs(graph);
}

int explain_graph_file(const GraphFileFlags& flags) {
  std::string text;
  try {
    text = read_file(flags.path);
  } catch (const UserError& error) {
    throw UserError(ErrorKind::config, error.problems());
  }
  const precision::GraphReport report = precision::explain_graph(text, flags.path, options(flags));
  for (const Problem& problem : report.warnings) {
    log_warning("{}: {}", to_string(problem.where), problem.message);
  }
  fmt::print("{}",
             flags.format == "json"  ? precision::to_json(report)
             : flags.format == "dot" ? precision::to_dot(report)
                                     : precision::to_table(report));
  if (const std::optional<config::Warning> unscaling = precision::unscaling_warning(
          report.result.graph,
          std::nullopt,
          "TensorFlow up to 2.19 leaves it in float32, later ones with "
          "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_INFERLIST_REMOVE=Mul,RealDiv")) {
    print_warnings({*unscaling});
  }
  if (report.result.status != precision::RewriteStatus::failed) return 0;
  log(LogLevel::error,
      fmt::format(
          "{}: the rewrite failed, as TensorFlow's would, and leaves the graph as it is: {}",
          flags.path,
          report.result.message));
  return static_cast<int>(ErrorKind::config);
}

}  // namespace halfstep::app
