#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>

#include "analysis/step_precision.h"
#include "command.h"
#include "config/warning_codes.h"
#include "core/printable.h"
#include "core/system.h"
#include "data/inputs.h"
#include "data/tensor_files.h"
#include "open_device.h"
#include "report/context.h"
#include "report/run_files.h"
#include "report/small_reports.h"
#include "train/checkpoint.h"
#include "train/session.h"
#include "used_run.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

struct EvalFlags {
  RunOptions run;
  std::string checkpoint;
  std::string split = "test";
  std::string predictions;
};

const data::SplitView& rows(const train::Session& session, const std::string& split) {
  const std::array splits{std::pair("train", &session.train_split()),
                          std::pair("validation", &session.validation_split()),
                          std::pair("test", &session.test_split())};
  std::vector<std::string> others;
  for (const auto& [name, rows] : splits) {
    if (rows->samples() == 0) continue;
    if (name == split) return *rows;
    others.push_back(fmt::format("--split {}", name));
  }
  throw UserError(ErrorKind::config,
                  {"--split", 0, 0, ""},
                  fmt::format("the data has no {} split", split),
                  fmt::format("use {}", fmt::join(others, " or ")));
}

/// The arrays `predictions` and `labels`, of several outputs `predictions_<output>` and
/// `labels_<output>` of each; outputs of real values have no predictions, and those without loss
/// and metrics no labels.
void write_predictions(const std::string& path,
                       const train::Evaluation& result,
                       const data::Dataset& dataset,
                       const TensorView& labels) {
  std::vector<Tensor> tensors;
  std::vector<data::NamedTensor> arrays;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const train::OutputPredictions& output = result.outputs[i];
    const bool several = result.outputs.size() > 1;
    const std::string behind = several ? "_" + output.output : "";
    TensorView own = labels;
    if (several && dataset.outputs[i].absent) {
      own = {};
    } else if (several) {
      tensors.push_back(data::labels_of(labels, dataset.outputs, i));
      own = tensors.back().view();
    }
    if (!several || !output.predictions.empty()) {
      const auto count = static_cast<std::int64_t>(output.predictions.size());
      const bool alike = own.data != nullptr && count == own.elements();
      Tensor predicted(DType::int64, alike ? own.shape : Shape{count});
      std::ranges::copy(output.predictions, predicted.as<std::int64_t>());
      arrays.push_back({"predictions" + behind, predicted.view()});
      tensors.push_back(std::move(predicted));
    }
    if (own.data != nullptr) arrays.push_back({"labels" + behind, own});
  }
  data::write_npz(path, arrays);
}

report::EvalReport eval_report(train::Session& session,
                               const EvalFlags& state,
                               const UsedRun& used,
                               const train::Evaluation& result,
                               const std::vector<config::Warning>& warnings,
                               std::int64_t samples) {
  report::EvalReport report;
  report.checkpoint = used.checkpoint;
  report.split = state.split;
  report.context = report::context(session.backend());
  report.config = report::config_block(session.spec(), used.config.overrides);
  report.precision = analysis::precision_of(
      session, session.plan(nn::Purpose::evaluate, std::min(session.evaluation_batch(), samples)));
  report.weights_hash = session.state().weights_hash();
  report.samples = samples;
  report.seconds = result.seconds;
  report.metrics = report::metrics_block(result.metrics);
  report.classes = report::classes_block(result, session.dataset().class_names);
  report.outputs = report::output_classes(result, session.dataset());
  report.warnings = report::warning_blocks(warnings);
  report.nonfinite = sanitize(field_ref(report));
  return report;
}

void print_classes(const train::OutputPredictions& output, const std::vector<std::string>& names) {
  const train::Confusion& c = output.confusion;
  if (c.classes == 0) return;
  fmt::print("\n{:<14} {:>7} {:>9}  predicted as\n",
             output.output.empty() ? "class" : output.output,
             "count",
             "accuracy");
  for (std::int64_t label = 0; label < c.classes; ++label) {
    std::int64_t count = 0;
    std::string row;
    for (std::int64_t p = 0; p < c.classes; ++p) {
      count += c.at(label, p);
      row += fmt::format(" {:>5}", c.at(label, p));
    }
    const auto index = static_cast<std::size_t>(label);
    const double correct = static_cast<double>(c.at(label, label));
    fmt::print("{:<14} {:>7} {:>9} {}\n",
               index < names.size() ? printable(names[index]) : std::to_string(label),
               count,
               count > 0 ? fmt::format("{:.4f}", correct / static_cast<double>(count)) : "-",
               row);
  }
}

void print_table(const train::Evaluation& result, const data::Dataset& dataset) {
  std::size_t width = 12;
  for (const auto& [name, value] : result.metrics) width = std::max(width, name.size());
  for (const auto& [name, value] : result.metrics) {
    fmt::print("{:<{}} {:.4f}\n", name, width, value);
  }
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    print_classes(result.outputs[i], dataset.class_names_of(i));
  }
}

int evaluate(const EvalFlags& state) {
  apply_logging(state.run);
  const UsedRun used = load_trained_run(state.run, state.checkpoint);
  const config::RunSpec& spec = used.config.spec;
  const backend::Backend device = open_device(spec);
  const data::Dataset dataset = load_data(used.config);
  train::Session session(spec, dataset, device, nn::Purpose::evaluate);
  print_warnings(session.warnings());
  train::load_weights(used.checkpoint, session.state());
  const data::SplitView& chosen = rows(session, state.split);
  const train::Evaluation result = train::evaluate(session, chosen);
  std::vector<config::Warning> warnings = session.warnings();
  const auto broken = std::ranges::find_if(
      result.metrics, [](const auto& metric) { return !std::isfinite(metric.second); });
  if (broken != result.metrics.end()) {
    warnings.push_back(config::warning(config::k_nonfinite_results,
                                       {used.checkpoint, 0, 0, ""},
                                       fmt::format("{} is {}", broken->first, broken->second)));
    log_warnings({&warnings.back(), 1});
  }
  if (!state.predictions.empty())
    write_predictions(state.predictions, result, dataset, chosen.labels);
  const report::EvalReport report =
      eval_report(session, state, used, result, warnings, chosen.samples());
  keep_report(state.run, report::k_eval_file, to_json(report));
  if (state.run.json) {
    fmt::print("{}", report::dump(to_json(report)));
  } else {
    print_table(result, dataset);
  }
  return 0;
}

std::function<int()> declare_eval(CLI::App& command) {
  const auto state = std::make_shared<EvalFlags>();
  declare(command, state->run, {.json = true, .run_dir = true});
  command.get_option("--config")->description(k_run_or_config);
  command.add_option("--checkpoint", state->checkpoint, k_checkpoint);
  command.add_option("--split", state->split, "train, validation or test")
      ->check(CLI::IsMember({"train", "validation", "test"}));
  command.add_option("--predictions",
                     state->predictions,
                     "NPZ file for the class of every sample, or of every position");
  return [state] { return evaluate(*state); };
}

}  // namespace

extern const Command k_eval{
    "eval", "metrics, accuracy per class and predictions of a run", declare_eval};

}  // namespace halfstep::app
