#include <map>
#include <set>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

/// Whether a kernel accepts the convolution with this bias.
bool fuses(const Graph& graph,
           const Node& conv,
           Value bias,
           const graph::OpTable& ops,
           const KernelSupport& supports) {
  const DType dtype = conv.outputs[0].dtype;
  if (dtype != DType::float32 && !is_half(dtype)) return false;
  return supports(
      graph::describe(ops,
                      "Conv2DBias",
                      {graph.input(conv.inputs[0]), graph.input(conv.inputs[1]), graph.input(bias)},
                      conv.attrs));
}

}  // namespace

Graph fuse_convolutions(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  const Users users(graph);
  std::map<int, int> conv_of;  // by the BiasAdd
  std::set<int> absorbed;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& conv = graph.node(id);
    if (!conv.is(graph::ops::k_conv2d)) continue;
    const int add = users.single_user({id, 0}, graph::ops::k_bias_add);
    if (add < 0) continue;
    const Node& bias_add = graph.node(add);
    if (bias_add.attrs.get<std::string>("data_format") != "NHWC" ||
        conv.attrs.get<std::string>("data_format") != "NHWC" ||
        !fuses(graph, conv, bias_add.inputs[1], ops, target.supports)) {
      continue;
    }
    conv_of[add] = id;
    absorbed.insert(id);
  }

  GraphRewriter rewriter(graph, ops);
  for (int id = 0; id < graph.size(); ++id) {
    const auto it = conv_of.find(id);
    if (it == conv_of.end()) {
      if (!absorbed.contains(id)) rewriter.copy(id);
      continue;
    }
    const Node& conv = graph.node(it->second);
    const Node& bias_add = graph.node(id);
    const graph::ScopeGuard scope(rewriter.builder(), conv.origin, "");
    // Named after the node whose value is its first output.
    const int fused = rewriter.builder().add_node("Conv2DBias",
                                                  {rewriter.mapped(conv.inputs[0]),
                                                   rewriter.mapped(conv.inputs[1]),
                                                   rewriter.mapped(bias_add.inputs[1])},
                                                  conv.attrs,
                                                  bias_add.name);
    rewriter.keep_control(it->second, fused);
    rewriter.replace({id, 0}, {fused, 0});
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
