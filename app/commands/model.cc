#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "command.h"
#include "core/printable.h"
#include "data/npz.h"
#include "data/safetensors.h"
#include "open_device.h"
#include "report/precision_block.h"
#include "run_options.h"
#include "train/checkpoint.h"
#include "training_run.h"

namespace halfstep::app {
namespace {

/// What one layer amounts to.
struct LayerRow {
  std::string type, policy, output, dtype;
  std::int64_t trainable = 0, fixed = 0;
  double flops = 0;
};

std::map<std::string, LayerRow> layer_rows(train::Session& session) {
  std::map<std::string, LayerRow> rows;
  const graph::Graph& graph = session.prepared().graph;
  for (const graph::Variable& v : graph.variables()) {
    const std::int64_t n = v.type.shape.elements();
    if (v.role == graph::Role::weight)
      (v.trainable ? rows[v.layer].trainable : rows[v.layer].fixed) += n;
    if (v.role == graph::Role::statistic) rows[v.layer].fixed += n;
  }
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.origin.phase != graph::Phase::forward || node.origin.layer.empty() ||
        node.outputs.empty())
      continue;
    if (!is_floating(node.outputs[0].dtype)) continue;
    rows[node.origin.layer].output = to_string(node.outputs[0].shape);
    rows[node.origin.layer].dtype = name(node.outputs[0].dtype);
  }
  for (const report::OpRow& op :
       report::op_rows(session.plan(nn::Purpose::train, session.spec().training.batch_size))) {
    if (op.phase == "forward") rows[op.layer].flops += op.flops;
  }
  return rows;
}

int summary(const RunOptions& options) {
  apply_logging(options);
  const LoadedConfig loaded = load_config(options);
  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = load_data(loaded);
  train::Session session(loaded.spec, dataset, device);
  std::map<std::string, LayerRow> rows = layer_rows(session);
  report::Json layers = report::Json::array();
  std::int64_t trainable = 0, fixed = 0;
  double flops = 0;
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
  for (const nn::ModelNode& node : session.blueprint().model.nodes) {
    const LayerRow& row = rows[node.name];
    trainable += row.trainable;
    fixed += row.fixed;
    flops += row.flops;
    if (!options.json) {
      fmt::print("{:<20} {:<24} {:<22} {:<16} {:>11} {:>9} {:>10.2f}\n",
                 printable(node.name),
                 node.type,
                 row.output,
                 node.precision.policy.name,
                 row.trainable,
                 row.fixed,
                 row.flops / 1e6);
    }
    layers.push_back({{"name", report::utf8(node.name)},
                      {"type", node.type},
                      {"output", row.output},
                      {"output_dtype", row.dtype},
                      {"policy", node.precision.policy.name},
                      {"trainable_parameters", row.trainable},
                      {"fixed_parameters", row.fixed},
                      {"forward_flops", report::number(row.flops)}});
  }
  const train::MemoryUse memory = session.memory();
  if (options.json) {
    const report::Json report{{"schema_version", 1},
                              {"kind", "model"},
                              {"batch_size", loaded.spec.training.batch_size},
                              {"layers", std::move(layers)},
                              {"trainable_parameters", trainable},
                              {"fixed_parameters", fixed},
                              {"forward_flops", report::number(flops)},
                              {"planned_state_bytes", memory.state_bytes},
                              {"planned_arena_bytes", memory.arena_bytes}};
    fmt::print("{}", report::dump(report));
    return 0;
  }
  fmt::print(
      "\n{} trainable and {} fixed parameters, {:.2f} MFLOP forward at batch {}\n"
      "variables {:.1f} MiB, step arena {:.1f} MiB\n",
      trainable,
      fixed,
      flops / 1e6,
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
  const LoadedConfig loaded = load_config(flags.run);
  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = load_data(loaded);
  train::Session session(loaded.spec, dataset, device, nn::Purpose::evaluate);
  train::load_weights(flags.checkpoint, session.state());
  std::vector<Tensor> converted;
  std::vector<data::NamedTensor> tensors;
  for (const plan::State::Entry& entry : session.state().entries()) {
    if (entry.variable.role != graph::Role::weight && entry.variable.role != graph::Role::statistic)
      continue;
    converted.emplace_back(dtype, entry.tensor.shape());
    convert(entry.tensor.view(), converted.back().view());
    tensors.push_back({entry.variable.name, converted.back().view()});
  }
  if (npz) {
    data::write_npz(flags.to, tensors);
  } else {
    data::write_safetensors(flags.to, tensors, {{"format", "halfstep"}});
  }
  fmt::print("{}: {} tensors, {}\n", flags.to, tensors.size(), flags.dtype);
  return 0;
}

std::function<int()> declare_model(CLI::App& command) {
  command.require_subcommand(1);
  const auto options = std::make_shared<RunOptions>();
  const auto flags = std::make_shared<Export>();
  CLI::App* summary_command =
      command.add_subcommand("summary", "layers, shapes, parameters, FLOPs");
  declare(*summary_command, *options, {});
  CLI::App* export_command =
      command.add_subcommand("export", "weights of a checkpoint as one file");
  declare(*export_command, flags->run, {});
  export_command->add_option("--checkpoint", flags->checkpoint, "checkpoint or run directory")
      ->required();
  export_command->add_option("--to", flags->to, "FILE.safetensors or FILE.npz")->required();
  export_command->add_option("--dtype", flags->dtype, "float32, float16 or bfloat16")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}));
  return [=] { return summary_command->parsed() ? summary(*options) : export_model(*flags); };
}

}  // namespace

const Command k_model{"model", "summary of a model, or its weights as a file", declare_model};

}  // namespace halfstep::app
