#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "analysis/step_precision.h"
#include "command.h"
#include "core/printable.h"
#include "data/tensor_files.h"
#include "nn/model_output.h"
#include "open_device.h"
#include "report/small_reports.h"
#include "study/random_data.h"
#include "terminal.h"
#include "train/checkpoint.h"
#include "used_run.h"

namespace halfstep::app {
namespace {

/// The line of the summary for one layer.
struct LayerSummary {
  std::string output, dtype;
  std::vector<std::string> further_outputs;
  std::int64_t trainable = 0, fixed = 0;
  double flops = 0;
};

std::map<std::string, LayerSummary> layer_rows(train::Session& session) {
  std::map<std::string, LayerSummary> rows;
  const graph::Graph& graph = session.prepared().graph;
  for (const graph::Variable& v : graph.variables()) {
    const std::int64_t n = v.type.shape.elements();
    if (v.role == graph::Role::weight)
      (v.trainable ? rows[v.layer].trainable : rows[v.layer].fixed) += n;
    if (v.role == graph::Role::statistic) rows[v.layer].fixed += n;
  }
  const nn::Model& model = session.step_spec().model;
  const std::vector<std::vector<graph::TensorType>> outputs =
      nn::layer_outputs(model, session.spec().training.batch_size);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    LayerSummary& row = rows[model.nodes[i].name];
    row.output = to_string(outputs[i][0].shape);
    row.dtype = name(outputs[i][0].dtype);
    for (std::size_t k = 1; k < outputs[i].size(); ++k) {
      row.further_outputs.push_back(to_string(outputs[i][k].shape));
    }
  }
  for (const analysis::OpInfo& op : analysis::op_rows(
           session, session.plan(nn::Purpose::train, session.spec().training.batch_size))) {
    if (op.phase == "forward") rows[op.layer].flops += op.flops;
  }
  return rows;
}

int summary(const RunOptions& options) {
  apply_logging(options);
  const UsedRun used = load_used_run(options, "");
  const LoadedConfig& loaded = used.config;
  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = shapes_of(used);
  train::Session session(loaded.spec, dataset, device);
  std::map<std::string, LayerSummary> rows = layer_rows(session);
  report::ModelReport report;
  if (!options.json) {
    fmt::print("{:<20} {:<24} {:<22} {:<16} {:>11} {:>9} {:>10}\n",
               "layer",
               "type",
               "output",
               "policy",
               "trainable",
               "fixed",
               "MFLOP");
  }
  for (const nn::ModelNode& node : session.step_spec().model.nodes) {
    const LayerSummary& row = rows[node.name];
    report.trainable_parameters += row.trainable;
    report.fixed_parameters += row.fixed;
    report.forward_flops += row.flops;
    if (!options.json) {
      fmt::print("{:<20} {:<24} {:<22} {:<16} {:>11} {:>9} {:>10.2f}\n",
                 printable(node.name),
                 node.type,
                 row.output,
                 node.precision.policy.name,
                 row.trainable,
                 row.fixed,
                 row.flops / 1e6);
      for (std::size_t k = 0; k < row.further_outputs.size(); ++k) {
        const std::string name = fmt::format("{}:{}", printable(node.name), k + 1);
        fmt::print("{:<45} {}\n", name, row.further_outputs[k]);
      }
    }
    report.layers.push_back({node.name,
                             node.type,
                             row.output,
                             row.further_outputs,
                             row.dtype,
                             std::string(node.precision.policy.name),
                             row.trainable,
                             row.fixed,
                             row.flops});
  }
  const train::MemoryUse memory = session.memory();
  if (options.json) {
    report.batch_size = loaded.spec.training.batch_size;
    report.planned_state_bytes = memory.state_bytes;
    report.planned_arena_bytes = memory.arena_bytes;
    fmt::print("{}", report::dump(to_json(report)));
    return 0;
  }
  fmt::print(
      "\n{} trainable and {} fixed parameters, {:.2f} MFLOP forward at batch {}\n"
      "variables {:.1f} MiB, step arena {:.1f} MiB\n",
      report.trainable_parameters,
      report.fixed_parameters,
      report.forward_flops / 1e6,
      loaded.spec.training.batch_size,
      static_cast<double>(memory.state_bytes) / (1 << 20),
      static_cast<double>(memory.arena_bytes) / (1 << 20));
  return 0;
}

struct Export {
  RunOptions run;
  std::string checkpoint, to;
  std::string dtype = "float32";
};

int export_model(const Export& flags) {
  apply_logging(flags.run);
  const bool npz = flags.to.ends_with(".npz");
  if (!npz && !flags.to.ends_with(".safetensors")) {
    throw UserError(
        ErrorKind::config, {"--to", 0, 0, ""}, "wants a name that ends in .safetensors or .npz");
  }
  const DType dtype = *dtype_named(flags.dtype);
  if (npz && dtype == DType::bfloat16) {
    throw UserError(
        ErrorKind::config, {"--dtype", 0, 0, ""}, "NumPy has no bfloat16", "use .safetensors");
  }
  const UsedRun used = load_trained_run(flags.run, flags.checkpoint);
  config::RunSpec spec = used.config.spec;
  const backend::Backend device = open_device(spec);
  // Weights depend on the model alone: one sample of its shape suffices.
  spec.data.validation_split = 0;
  spec.training.batch_size = 1;
  spec.training.validation_batch_size = 1;
  const data::Dataset dataset = study::random_samples(study::describe_data(spec), 1, 0);
  train::Session session(spec, dataset, device, nn::Purpose::predict);
  train::load_weights(used.checkpoint, session.state());
  std::vector<Tensor> converted;
  std::vector<data::NamedTensor> tensors;
  for (const plan::State::Entry& entry : session.state().entries()) {
    if (!graph::in_weights(entry.variable.role)) continue;
    converted.emplace_back(dtype, entry.tensor.shape());
    convert(entry.tensor.view(), converted.back().view());
    tensors.push_back({entry.variable.name, converted.back().view()});
  }
  if (npz) {
    data::write_npz(flags.to, tensors);
  } else {
    data::write_safetensors(flags.to, tensors, {{"format", "halfstep"}});
  }
  if (flags.run.json) {
    const report::ModelExportReport report{flags.to, used.checkpoint, tensors.size(), flags.dtype};
    fmt::print("{}", report::dump(to_json(report)));
  } else {
    print_line("{}: {} tensors, {}", flags.to, tensors.size(), flags.dtype);
  }
  return 0;
}

std::function<int()> declare_model(CLI::App& command) {
  command.require_subcommand(1);
  const auto options = std::make_shared<RunOptions>();
  const auto flags = std::make_shared<Export>();
  CLI::App* summary_command =
      command.add_subcommand("summary", "layers, shapes, parameters, FLOPs");
  declare(*summary_command, *options, {.json = true});
  summary_command->get_option("--config")->description("YAML config or run directory");
  CLI::App* export_command =
      command.add_subcommand("export", "weights of a checkpoint as one file");
  declare(*export_command, flags->run, {.batch_size = false, .seed = false, .json = true});
  export_command->get_option("--config")->description(k_run_or_config);
  export_command->add_option("--checkpoint", flags->checkpoint, k_checkpoint);
  export_command->add_option("--to", flags->to, "FILE.safetensors or FILE.npz")->required();
  export_command->add_option("--dtype", flags->dtype, "float32, float16 or bfloat16")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}));
  return [=] { return summary_command->parsed() ? summary(*options) : export_model(*flags); };
}

}  // namespace

extern const Command k_model{
    "model", "summary of a model, or its weights as a file", declare_model};

}  // namespace halfstep::app
