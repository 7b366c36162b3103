#include "analysis/work.h"

#include <set>

#include "graph/op_handles.h"
#include "graph/ops/attention.h"
#include "graph/ops/fused_update.h"

namespace halfstep::analysis {
namespace {

using graph::Graph;
using graph::Node;
using graph::TensorType;
namespace ops = graph::ops;

constexpr graph::OpHandle k_gather{"GatherV2"};
constexpr graph::OpHandle k_assign{"AssignVariableOp"};

double moved_bytes(const Graph& graph, const Node& node) {
  double bytes = 0;
  for (const TensorType& type : node.outputs) bytes += bytes_of(type);
  std::set<graph::Value> seen;
  if (node.is(k_gather)) {
    bytes += bytes_of(node.outputs[0]);
    seen.insert(node.inputs[0]);
  }
  for (const graph::Value& input : node.inputs) {
    if (!seen.insert(input).second) continue;
    const bool variable = graph.type(input).dtype == DType::resource;
    const double once =
        bytes_of(variable ? ops::variable_type(graph.node(input.node)) : graph.type(input));
    bytes += variable && !node.is(k_assign) ? 2 * once : once;
  }
  return bytes;
}

double flops_of(const Graph& graph, const Node& node) {
  const auto elements = [&](std::size_t i) {
    return static_cast<double>(graph.type(node.inputs[i]).shape.elements());
  };
  const auto outputs =
      static_cast<double>(node.outputs.empty() ? 0 : node.outputs[0].shape.elements());
  if (node.is(ops::k_matmul, ops::k_fused_matmul)) {
    const Shape& a = graph.type(node.inputs[0]).shape;
    return 2 * outputs * static_cast<double>(node.attrs.get<bool>("transpose_a") ? a[0] : a[1]);
  }
  if (node.is(ops::k_batch_matmul_v2)) {
    const Shape& x = graph.type(node.inputs[0]).shape;
    const std::size_t contracted = x.rank() - (node.attrs.get<bool>("adj_x") ? 2 : 1);
    return 2 * outputs * static_cast<double>(x[contracted]);
  }
  if (node.is(ops::k_fused_attention, ops::k_fused_attention_grad)) {
    // The operations of the matmuls that it replaces: masked scores count, and scores that the
    // gradient computes again do not.
    const bool to_result = node.is(ops::k_fused_attention);
    const auto shape = [&](std::size_t i) -> const Shape& {
      return graph.type(node.inputs[to_result ? i : i + 1]).shape;
    };
    const ops::AttentionGeometry g =
        ops::attention_geometry(node.attrs, shape(0), shape(1), shape(2));
    return (to_result ? 2 : 4) * static_cast<double>(g.items() * g.queries * g.keys) *
           static_cast<double>(g.depth + g.value_depth);
  }
  if (node.is(ops::k_rnn, ops::k_rnn_grad)) {
    // The recurrent matmul of each sample and step, or its transpose.
    const Shape& rows = node.outputs[0].shape;
    return 2 * outputs / static_cast<double>(rows.back()) * elements(node.is(ops::k_rnn) ? 1 : 2);
  }
  if (node.is(ops::k_packed_matmul, ops::k_packed_matmul_update)) {
    double product = 2;
    for (const char* extent : {"m", "n", "k"}) {
      product *= static_cast<double>(node.attrs.get<std::int64_t>(extent));
    }
    return product;
  }
  const bool forward = node.is(
      ops::k_conv2d, ops::k_conv2d_bias, ops::k_conv2d_bias_relu, ops::k_depthwise_conv2d_native);
  const bool to_filter =
      node.is(ops::k_conv2d_backprop_filter, ops::k_depthwise_conv2d_native_backprop_filter);
  if (forward || to_filter ||
      node.is(ops::k_conv2d_backprop_input, ops::k_depthwise_conv2d_native_backprop_input)) {
    const Shape& filter = to_filter ? node.outputs[0].shape : graph.type(node.inputs[1]).shape;
    const bool depthwise = node.is(ops::k_depthwise_conv2d_native,
                                   ops::k_depthwise_conv2d_native_backprop_input,
                                   ops::k_depthwise_conv2d_native_backprop_filter);
    const auto taps = static_cast<double>(filter[0] * filter[1] * (depthwise ? 1 : filter[2]));
    return 2 * (forward ? outputs : elements(2)) * taps;
  }
  return 0;
}

}  // namespace

double bytes_of(const TensorType& type) {
  return static_cast<double>(type.shape.elements()) * static_cast<double>(size_bytes(type.dtype));
}

NodeWork node_work(const Graph& graph, const Node& node) {
  return {flops_of(graph, node), moved_bytes(graph, node)};
}

}  // namespace halfstep::analysis
