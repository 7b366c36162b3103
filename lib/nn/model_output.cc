#include "nn/model_output.h"

#include <fmt/format.h>

#include <array>

#include "config/warning_codes.h"
#include "core/ranges.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "nn/layers/samples.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Ops whose result is between 0 and 1 where all of their operands are.
constexpr std::array<std::string_view, 22> k_bounded{
    "AvgPool", "BroadcastTo", "Cast",    "ConcatV2",  "ExpandDims", "Identity",
    "Max",     "MaxPool",     "Maximum", "Mean",      "Min",        "Minimum",
    "Mul",     "Pad",         "Reshape", "ReverseV2", "SelectV2",   "Slice",
    "Split",   "Squeeze",     "Tile",    "Transpose"};

bool squashes(std::string_view op) {
  return op == graph::ops::k_softmax || op == graph::ops::k_sigmoid;
}

/// The nodes that `output` depends on, itself among them; of those whose `reads_on(node)` is false
/// without their inputs.
template <class ReadsOn>
std::vector<bool> ancestors_of(const graph::Graph& graph, Value output, const ReadsOn& reads_on) {
  std::vector<bool> found(static_cast<std::size_t>(graph.size()), false);
  std::vector<int> open{output.node};
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (found[static_cast<std::size_t>(id)]) continue;
    found[static_cast<std::size_t>(id)] = true;
    const graph::Node& node = graph.node(id);
    if (!reads_on(node)) continue;
    for (const Value& input : node.inputs) open.push_back(input.node);
  }
  return found;
}

/// Whether all values are probabilities: those of a softmax or sigmoid, through ops of k_bounded.
/// Constants, masks and indices may be among the operands; a mean of several outputs is a sum
/// times a constant.
bool gives_probabilities(const graph::Graph& graph, Value output) {
  bool bounded = true;
  ancestors_of(graph, output, [&](const graph::Node& node) {
    const bool floats = !node.outputs.empty() && is_floating(node.outputs.front().dtype);
    if (squashes(node.op) || node.op == graph::ops::k_const || !floats) return false;
    const bool sum = node.op == graph::ops::k_add_v2 || node.op == graph::ops::k_add_n;
    bounded = bounded && (sum || contains(k_bounded, node.op));
    return bounded;
  });
  return bounded;
}

/// The forward pass of training, built to look at its types.
struct TrainingForward {
  graph::Graph graph;
  graph::Builder b{graph, graph::op_table()};
  Forward forward;

  TrainingForward(const Model& model, std::int64_t batch) {
    std::vector<Value> inputs;  // the first nodes
    for (const Model::Input& input : model.inputs) {
      inputs.push_back(b.placeholder(input.name, DType::float32, batched(batch, input.shape)));
    }
    const Value ordinal = b.placeholder("ordinal", DType::int64, {});
    forward = build_forward(b, model, std::move(inputs), ordinal, 0, true, batch);
  }
};

}  // namespace

std::vector<std::vector<graph::TensorType>> layer_outputs(const Model& model, std::int64_t batch) {
  const TrainingForward built(model, batch);
  std::vector<std::vector<graph::TensorType>> types;
  for (const std::vector<LayerOutput>& outputs : built.forward.nodes) {
    types.emplace_back();
    for (const auto& [value, mask] : outputs) types.back().push_back(built.graph.type(value));
  }
  return types;
}

std::vector<ModelOutput> model_outputs(const Model& model) {
  const TrainingForward built(model, 2);
  const graph::Graph& graph = built.graph;
  std::vector<ModelOutput> outputs;
  for (std::size_t i = 0; i < built.forward.outputs.size(); ++i) {
    const Value last = built.forward.outputs[i];
    ModelOutput& output = outputs.emplace_back();
    output.masked = built.forward.masks[i].valid();
    output.shape = sample_of(graph.type(last).shape);
    const graph::Node* node = &graph.node(last.node);
    while (node->is(graph::ops::k_cast, graph::ops::k_reshape))
      node = &graph.node(node->inputs[0].node);
    if (squashes(node->op)) output.activation = node->op;
    output.probabilities = gives_probabilities(graph, last);
    const std::vector<bool> ancestors =
        ancestors_of(graph, last, [](const graph::Node&) { return true; });
    output.reads.assign(ancestors.begin(),
                        ancestors.begin() + static_cast<std::ptrdiff_t>(model.inputs.size()));
  }
  return outputs;
}

std::vector<config::Warning> output_warnings(const ModelOutput& output,
                                             const Loss& loss,
                                             std::string_view last_layer,
                                             const Where& where) {
  if (loss.takes_probabilities() && !output.probabilities) {
    const bool binary = of_events(loss.label_kind());
    return {
        config::warning(config::k_loss_gets_scores,
                        where,
                        fmt::format("takes probabilities, but the model's output '{}' gives scores "
                                    "without bounds: training would make no sense; give {}the last "
                                    "layer activation: {}",
                                    last_layer,
                                    loss.may_take_logits() ? "the loss from_logits: true, or " : "",
                                    binary ? "sigmoid" : "softmax"))};
  }
  if (loss.from_logits() && !output.activation.empty()) {
    const bool signs = loss.label_kind() == LabelKind::signs;
    return {config::warning(
        config::k_loss_gets_probabilities,
        where,
        fmt::format("takes scores{}, but the model's output '{}' is a {} already, which {} that "
                    "activation",
                    signs ? "" : " (from_logits: true)",
                    last_layer,
                    output.activation == "Softmax" ? "softmax" : "sigmoid",
                    signs ? "is never negative; remove"
                          : "would be applied twice; remove from_logits or"))};
  }
  return {};
}

}  // namespace halfstep::nn
