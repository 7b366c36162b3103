#include "config/run_spec.h"

#include <array>
#include <filesystem>
#include <span>

#include "config/blocks.h"
#include "config/describe.h"
#include "config/merge.h"
#include "config/node.h"
#include "config/outputs.h"
#include "config/printer.h"
#include "config/yaml.h"
#include "core/hash.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

/// Expands shorthand scalars into their maps.
void spell_out_all(Node& root) {
  for (const std::string_view path : {"device", "precision.loss_scale", "report.numerics"}) {
    if (Node* node = const_cast<Node*>(find_path(root, path))) expand_shorthand(*node, path);
  }
  set_paths(root);
}

/// The directory that a relative path starts from: the config file's, or the working directory for
/// a path from the command line.
std::string directory_of(const Where& where) {
  return where.line > 0 ? std::filesystem::path(where.file).parent_path().string() : std::string();
}

/// Sets the origin of each value of a printed config.
void copy_origins(Node& printed, const RunSpec& spec) {
  printed.where = spec.where(printed.where.path);
  for (Node& item : printed.items) copy_origins(item, spec);
  for (Node::Entry& entry : printed.entries) copy_origins(entry.value, spec);
}

/// Drops the keys of the other form of a model.
void drop_other_form(Node& printed, const ModelSpec& model) {
  Node* section = printed.find("model");
  if (section == nullptr) return;
  std::erase_if(section->entries, [&model](const Node::Entry& entry) {
    if (entry.key == "blocks") return true;
    if (entry.key == "input") return !model.sequential();
    return model.sequential() && (entry.key == "inputs" || entry.key == "outputs");
  });
}

}  // namespace

Where RunSpec::where(std::string_view path) const {
  Where nowhere{{}, 0, 0, std::string(path)};
  const auto steps = parse_path(path);
  if (!steps) return nowhere;
  const Node* node = &source;
  for (const PathStep& step : *steps) {
    const Node* next = find_step(*node, step);
    // A shorthand in place of a map or a list gives all of its values.
    if (next == nullptr && node->kind == Node::Kind::scalar) break;
    if (next == nullptr) return nowhere;
    node = next;
  }
  Where found = node->where;
  found.path = path;
  return found;
}

bool is_regression(std::string_view loss) {
  // The layers above hold the losses themselves; a test compares this list with them.
  constexpr std::array<std::string_view, 8> k_of_values{"cosine_similarity",
                                                        "huber",
                                                        "log_cosh",
                                                        "mean_absolute_error",
                                                        "mean_absolute_percentage_error",
                                                        "mean_squared_error",
                                                        "mean_squared_logarithmic_error",
                                                        "poisson"};
  return contains(k_of_values, loss);
}

std::vector<std::string> RunSpec::epoch_metrics() const {
  std::vector<std::string> names{"loss"};
  names.insert(names.end(), metrics.begin(), metrics.end());
  if (data.validation_split == 0) return names;
  for (std::size_t i = 0, n = names.size(); i < n; ++i) names.push_back("val_" + names[i]);
  return names;
}

void ModelSpec::fields(Fields& f) {
  f.field("input",
          input,
          {.doc = "Extents of one sample, without the batch, for `layers`: [height, width, "
                  "channels] for images, [values] for vectors. Samples with as many values are "
                  "reshaped to it. [elements]",
           .min = 1});
  f.field("layers",
          layers,
          {.doc = "A list of layers, each the input of the next: maps with `type` and the layer's "
                  "arguments."});
  f.field("inputs",
          inputs,
          {.doc = "Names and extents of the inputs, for `nodes`: {image: [28, 28, 1]}. Several "
                  "are arrays of an npz, each with its name. [elements]",
           .min = 1});
  f.field("nodes",
          nodes,
          {.doc = "Layers by name, each with its inputs in `from`: {c1: {type: conv2d, filters: "
                  "32, kernel_size: 3, from: image}}."});
  f.field("blocks",
          blocks,
          {.doc = "Parts of the graph by name, which a node uses with `block` and repeats `count` "
                  "times: {encoder: {parameters: {heads: 4}, nodes: {...}}}. The last of a block's "
                  "`nodes` is its output, unless `output` names another; they read `input`, or "
                  "what `inputs` lists, and `$heads` stands for a parameter. `config show` prints "
                  "the nodes that they become."});
  f.field(
      "outputs",
      outputs,
      {.doc = "Names of the nodes that are the model's outputs, `name:1` for the second output "
              "of a node that has several. Several are trained together: the labels of each are "
              "arrays of an npz with its name."});
}

void RunSpec::fields(Fields& f) {
  f.field("version", version, {.doc = "Version of this format; this program reads 1."});
  f.field("name", name, {.doc = "Name of the run; its directory is runs/NAME/..."});
  f.field("seed",
          seed,
          {.doc = "Seed of initial weights, batch order, dropout and random layers.", .min = 0});
  f.section("data",
            data,
            {.doc = "The samples: where they are and how they are prepared.", .required = true});
  f.section("model",
            model,
            {.doc = "The layers: a list with `input` and `layers`, or a graph with `inputs`, "
                    "`nodes` and `outputs`.",
             .required = true});
  f.section("precision", precision, {.doc = "Dtypes, the automatic rewrite, and the loss scale."});
  f.field("loss",
          loss,
          {},
          {.doc = "The value that training minimizes: the name of a loss, or a map with `type` and "
                  "its arguments. Of several outputs it is the weighted sum of their losses, of "
                  "this one or of those in a map from outputs: {digit: "
                  "sparse_categorical_crossentropy, offset: {type: huber, delta: 0.5}}. An output "
                  "with null has no loss: it is computed, and its labels are read for its metrics "
                  "alone.",
           .required = true,
           .by_name = true});
  f.field("loss_weights",
          loss_weights,
          {.doc = "Factors of the losses of several outputs in their sum, by output, as {digit: 1, "
                  "offset: 0.1}; outputs that are not named have 1."});
  f.field(
      "optimizer",
      optimizer,
      {},
      {.doc =
           "How weights change: the name of an optimizer, or a map with `type` and its arguments.",
       .required = true});
  f.field("metrics",
          metrics,
          {.doc = "Metrics measured beside the loss on every split; the default for "
                  "mean_squared_error is mean_absolute_error. Those of several outputs are named "
                  "`<output>_<metric>`, as reports name them, or given in a map from outputs: "
                  "{digit: accuracy}; a name without an output is measured for each that has a "
                  "loss.",
           .by_name = true});
  f.section("training", training, {.doc = "Length of training, batches, and checkpoints."});
  f.section("report", report, {.doc = "Reports of the run."});
  f.section("device",
            device,
            {.doc = "Where the run computes.",
             .shorthand_key = "kind",
             .shorthand_pattern = "^cuda:[0-9]+$"});
  f.section("parallel",
            parallel,
            {.doc = "How the ranks of a run, which mpirun or srun start, train together. A run of "
                    "one process ignores it."});
  f.section("slurm", slurm, {.doc = "Handling of a job that Slurm ends."});
}

namespace {

/// The path of the only field of a config with this name, or nothing.
std::string only_path_of(std::string_view key) {
  std::string path;
  for (const FieldDoc& field : describe_struct(RunSpec())) {
    if (field.name != key) continue;
    if (!path.empty()) return "";
    path = field.path;
  }
  return path;
}

}  // namespace

RunSpec parse_run_spec(const Node& node, Diagnostics& diagnostics) {
  RunSpec spec;
  spec.source = node;
  expand_blocks(spec.source, diagnostics);
  expand_metrics(spec.source, diagnostics);
  spell_out_all(spec.source);
  spec.metrics.clear();  // which is no default of a list that cannot be read
  Reader reader(spec.source, diagnostics, {}, only_path_of);
  spec.fields(reader);
  reader.finish();
  if (spec.source.find("metrics") == nullptr) spec.metrics = default_metrics(spec);
  spec.data.base = directory_of(spec.where("data.path"));
  check(spec, diagnostics);
  return spec;
}

std::string print(const RunSpec& spec, const PrintOptions& options) {
  RunSpec copy = spec;
  if (options.absolute_paths && copy.data.path) {
    copy.data.path = std::filesystem::absolute(*copy.data.resolved_path()).string();
  }
  RunSpec defaulted;
  defaulted.metrics = default_metrics(spec);
  const Node defaults = to_node(std::move(defaulted));
  Node printed = to_node(std::move(copy), options.minimal ? &defaults : nullptr);
  drop_other_form(printed, spec.model);
  if (spec.loss_weights.empty()) {
    std::erase_if(printed.entries, [](const Node::Entry& e) { return e.key == "loss_weights"; });
  }
  set_paths(printed);
  if (options.origins) copy_origins(printed, spec);
  return emit_yaml(printed, options.origins);
}

std::string config_hash(const RunSpec& spec) {
  const std::string text = print(spec);
  return sha256_hex(std::as_bytes(std::span(text)));
}

}  // namespace halfstep::config
