#include "nn/model_output.h"

#include <fmt/format.h>

#include <array>

#include "config/warning_codes.h"
#include "core/ranges.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Ops after which the output of a softmax or sigmoid is no probability any more.
constexpr std::array<std::string_view, 10> k_unbounded{"BatchMatMulV2",
                                                       "Conv2D",
                                                       "DepthwiseConv2dNative",
                                                       "FusedBatchNormV3",
                                                       "GatherV2",
                                                       "Log",
                                                       "LogSoftmax",
                                                       "MatMul",
                                                       "Placeholder",
                                                       "ReadVariableOp"};

bool squashes(std::string_view op) {
  return op == graph::ops::k_softmax || op == graph::ops::k_sigmoid;
}

bool gives_probabilities(const graph::Graph& graph, Value output) {
  std::vector<bool> seen(static_cast<std::size_t>(graph.size()), false);
  std::vector<int> open{output.node};
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (seen[static_cast<std::size_t>(id)]) continue;
    seen[static_cast<std::size_t>(id)] = true;
    const graph::Node& node = graph.node(id);
    if (squashes(node.op)) return true;
    if (contains(k_unbounded, node.op)) continue;
    for (const Value& input : node.inputs) open.push_back(input.node);
  }
  return false;
}

/// The forward pass of training, built to look at its types.
struct Draft {
  graph::Graph graph;
  graph::Builder b{graph, graph::op_table()};
  Forward forward;

  Draft(const Model& model, std::int64_t batch) {
    std::vector<Value> inputs;
    for (const Model::Input& input : model.inputs) {
      std::vector<std::int64_t> extents{batch};
      extents.insert(extents.end(), input.shape.begin(), input.shape.end());
      inputs.push_back(b.placeholder(input.name, DType::float32, Shape(extents)));
    }
    const Value ordinal = b.placeholder("ordinal", DType::int64, {});
    forward = build_forward(b, model, std::move(inputs), ordinal, 0, true, batch);
  }
};

}  // namespace

std::vector<std::vector<graph::TensorType>> layer_outputs(const Model& model, std::int64_t batch) {
  const Draft draft(model, batch);
  std::vector<std::vector<graph::TensorType>> types;
  for (const std::vector<LayerOutput>& outputs : draft.forward.nodes) {
    types.emplace_back();
    for (const auto& [value, mask] : outputs) types.back().push_back(draft.graph.type(value));
  }
  return types;
}

std::vector<ModelOutput> model_outputs(const Model& model) {
  const Draft draft(model, 2);
  const graph::Graph& graph = draft.graph;
  std::vector<ModelOutput> outputs;
  for (std::size_t i = 0; i < draft.forward.outputs.size(); ++i) {
    const Value last = draft.forward.outputs[i];
    ModelOutput& output = outputs.emplace_back();
    output.masked = draft.forward.masks[i].valid();
    output.shape = Shape(graph.type(last).shape.dims().subspan(1));
    const graph::Node* node = &graph.node(last.node);
    while (node->is(graph::ops::k_cast, graph::ops::k_reshape))
      node = &graph.node(node->inputs[0].node);
    if (squashes(node->op)) output.activation = node->op;
    output.probabilities = gives_probabilities(graph, last);
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
                                    "without bounds: training would make no sense; give the loss "
                                    "from_logits: true, or the last layer activation: {}",
                                    last_layer,
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
                    signs ? "is never negative; leave out"
                          : "would be applied twice; leave out from_logits or"))};
  }
  return {};
}

}  // namespace halfstep::nn
