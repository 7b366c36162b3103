#include <optional>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

/// A normalization and the nodes fused into it.
struct FusedNorm {
  int norm = -1;
  int add = -1;
  int relu = -1;
  Value side{};  ///< the other operand of `add`
};

/// A gradient of a normalization with a fused Relu, and the ReluGrad before it.
struct FusedGradient {
  int gradient = -1;
  int relu_grad = -1;
  Value offset;
};

bool is_bare(const Node& norm) {
  return norm.is(graph::ops::k_fused_batch_norm_v3) &&
         norm.attrs.get<std::string>("data_format") == "NHWC";
}

class NormFusion {
 public:
  NormFusion(const Graph& graph, const graph::OpTable& ops, const KernelSupport& supports)
      : graph_(graph), ops_(ops), supports_(supports), users_(graph), rewriter_(graph, ops) {}

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (is_bare(graph_.node(id))) find(id);
      if (graph_.node(id).is(graph::ops::k_fused_batch_norm_grad_v3)) find_gradient(id);
    }
    for (int id = 0; id < graph_.size(); ++id) {
      if (const auto it = norms_.find(id); it != norms_.end()) {
        emit(it->second);
      } else if (const auto grad = gradients_.find(id); grad != gradients_.end()) {
        emit(grad->second);
      } else if (!absorbed_.contains(id)) {
        rewriter_.copy(id);
      }
    }
    return prune(rewriter_.finish());
  }

 private:
  void find(int norm) {
    FusedNorm fused{.norm = norm};
    Value y{norm, 0};
    const int add = users_.single_user(y, graph::ops::k_add_v2);
    if (add >= 0) {
      const Node& sum = graph_.node(add);
      fused.side = sum.inputs[0] == y ? sum.inputs[1] : sum.inputs[0];
      // The fused node is at the position of the normalization, so the side input must be computed
      // before it.
      if (fused.side.node >= norm || graph_.type(fused.side) != graph_.type(y)) return;
      fused.add = add;
      y = {add, 0};
    }
    fused.relu = users_.single_user(y, graph::ops::k_relu);
    if (fused.relu < 0 || !supported(fused)) return;
    norms_[norm] = fused;
    absorbed_[fused.relu] = true;
    if (add >= 0) absorbed_[add] = true;
  }

  bool supported(const FusedNorm& fused) const {
    const Node& norm = graph_.node(fused.norm);
    if (graph_.type(norm.inputs[1]).dtype != DType::float32) return false;
    std::vector<graph::OpInput> inputs = graph::inputs_of(graph_, norm);
    if (fused.add >= 0) inputs.push_back(graph_.input(fused.side));
    return supports_(
        graph::describe(ops_, "_FusedBatchNormEx", std::move(inputs), attributes(fused)));
  }

  graph::Attrs attributes(const FusedNorm& fused) const {
    graph::Attrs attrs = graph_.node(fused.norm).attrs;
    attrs.set("activation_mode", std::string("Relu"));
    attrs.set("num_side_inputs", std::int64_t{fused.add >= 0 ? 1 : 0});
    return attrs;
  }

  /// The fused gradient recomputes the mask of the Relu from the input of the normalization alone,
  /// so a normalization with a side input keeps its ReluGrad.
  void find_gradient(int gradient) {
    const Node& node = graph_.node(gradient);
    const int relu_grad = node.inputs[0].node;
    if (!graph_.node(relu_grad).is(graph::ops::k_relu_grad) ||
        users_.single_user(node.inputs[0], graph::ops::k_fused_batch_norm_grad_v3) != gradient) {
      return;
    }
    for (const auto& [id, fused] : norms_) {
      const Node& norm = graph_.node(id);
      if (fused.add >= 0 || graph_.node(relu_grad).inputs[1] != Value{fused.relu, 0}) continue;
      const bool training = norm.attrs.get<bool>("is_training");
      const Value mean = training ? Value{id, 3} : norm.inputs[3];
      const Value variance = training ? Value{id, 4} : norm.inputs[4];
      if (node.inputs[1] != norm.inputs[0] || node.inputs[2] != norm.inputs[1] ||
          node.inputs[3] != mean || node.inputs[4] != variance ||
          node.attrs.get<bool>("is_training") != training ||
          node.attrs.get<double>("epsilon") != norm.attrs.get<double>("epsilon")) {
        return;
      }
      gradients_[gradient] = {gradient, relu_grad, norm.inputs[2]};
      absorbed_[relu_grad] = true;
    }
  }

  void emit(const FusedNorm& fused) {
    const Node& norm = graph_.node(fused.norm);
    const graph::ScopeGuard scope(rewriter_.builder(), norm.origin, "");
    std::vector<Value> inputs;
    for (const Value& input : norm.inputs) inputs.push_back(rewriter_.mapped(input));
    if (fused.add >= 0) inputs.push_back(rewriter_.mapped(fused.side));
    // The node takes the name of the activation.
    const int id = rewriter_.builder().add_node(
        "_FusedBatchNormEx", std::move(inputs), attributes(fused), graph_.node(fused.relu).name);
    rewriter_.keep_control(fused.norm, id);
    for (int port = 1; port < 6; ++port) rewriter_.replace({fused.norm, port}, {id, port});
    rewriter_.replace({fused.relu, 0}, {id, 0});
  }

  void emit(const FusedGradient& fused) {
    const Node& node = graph_.node(fused.gradient);
    const graph::ScopeGuard scope(rewriter_.builder(), node.origin, "");
    const auto mapped = [&](std::size_t i) { return rewriter_.mapped(node.inputs[i]); };
    const int id =
        rewriter_.builder().add_node("BatchNormReluGrad",
                                     {rewriter_.mapped(graph_.node(fused.relu_grad).inputs[0]),
                                      mapped(1),
                                      mapped(2),
                                      rewriter_.mapped(fused.offset),
                                      mapped(3),
                                      mapped(4)},
                                     {{"epsilon", node.attrs.get<double>("epsilon")},
                                      {"is_training", node.attrs.get<bool>("is_training")}},
                                     node.name);
    rewriter_.keep_control(fused.gradient, id);
    for (int port = 0; port < 3; ++port) rewriter_.replace({fused.gradient, port}, {id, port});
  }

  const Graph& graph_;
  const graph::OpTable& ops_;
  const KernelSupport& supports_;
  Users users_;
  GraphRewriter rewriter_;
  std::map<int, FusedNorm> norms_;          ///< by the normalization
  std::map<int, FusedGradient> gradients_;  ///< by the gradient
  std::map<int, bool> absorbed_;
};

}  // namespace

Graph fuse_norms(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  return NormFusion(graph, ops, target.supports).run();
}

}  // namespace halfstep::passes
