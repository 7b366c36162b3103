#include "passes/fuse_norms.h"

#include <optional>

#include "passes/prune.h"
#include "passes/rebuild.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

/// A normalization and what moves into it.
struct Fused {
  int norm = -1;
  int add = -1;
  int relu = -1;
  Value side{};  ///< what is added, when `add` is there
};

/// A gradient of a normalization whose Relu moved into that, and the ReluGrad before it.
struct FusedGradient {
  int gradient = -1;
  int relu_grad = -1;
  Value offset;
};

bool is_bare(const Node& norm) {
  return norm.op == "FusedBatchNormV3" && norm.attrs.get<std::string>("data_format") == "NHWC";
}

class NormFusion {
 public:
  NormFusion(const Graph& graph, const graph::OpTable& ops, const Runs& runs)
      : graph_(graph), ops_(ops), runs_(runs), readers_(graph), rebuild_(graph, ops) {}

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (is_bare(graph_.node(id))) find(id);
      if (graph_.node(id).op == "FusedBatchNormGradV3") find_gradient(id);
    }
    for (int id = 0; id < graph_.size(); ++id) {
      if (const auto it = norms_.find(id); it != norms_.end()) {
        emit(it->second);
      } else if (const auto grad = gradients_.find(id); grad != gradients_.end()) {
        emit(grad->second);
      } else if (!absorbed_.contains(id)) {
        rebuild_.copy(id);
      }
    }
    return prune(rebuild_.finish());
  }

 private:
  void find(int norm) {
    Fused fused{.norm = norm};
    Value y{norm, 0};
    const int add = readers_.only(y, "AddV2");
    if (add >= 0) {
      const Node& sum = graph_.node(add);
      fused.side = sum.inputs[0] == y ? sum.inputs[1] : sum.inputs[0];
      // The fused op stands where the normalization does, so that the side input must be there.
      if (fused.side.node >= norm || graph_.type(fused.side) != graph_.type(y)) return;
      fused.add = add;
      y = {add, 0};
    }
    fused.relu = readers_.only(y, "Relu");
    if (fused.relu < 0 || !accepted(fused)) return;
    norms_[norm] = fused;
    absorbed_[fused.relu] = true;
    if (add >= 0) absorbed_[add] = true;
  }

  bool accepted(const Fused& fused) const {
    Graph trial;
    graph::Builder b(trial, ops_);
    std::vector<Value> inputs;
    const auto stand_in = [&](Value of) {
      const graph::TensorType& type = graph_.type(of);
      inputs.push_back(b.placeholder(std::to_string(inputs.size()), type.dtype, type.shape));
    };
    for (const Value& input : graph_.node(fused.norm).inputs) stand_in(input);
    if (graph_.type(graph_.node(fused.norm).inputs[1]).dtype != DType::float32) return false;
    if (fused.add >= 0) stand_in(fused.side);
    const int id = b.add_node("_FusedBatchNormEx", std::move(inputs), attributes(fused));
    return runs_(trial, trial.node(id));
  }

  graph::Attrs attributes(const Fused& fused) const {
    graph::Attrs attrs = graph_.node(fused.norm).attrs;
    attrs.set("activation_mode", std::string("Relu"));
    attrs.set("num_side_inputs", std::int64_t{fused.add >= 0 ? 1 : 0});
    return attrs;
  }

  /// The mask of a Relu is found again from the input of the normalization alone, so one with a
  /// side input keeps its ReluGrad.
  void find_gradient(int gradient) {
    const Node& node = graph_.node(gradient);
    const int relu_grad = node.inputs[0].node;
    if (graph_.node(relu_grad).op != "ReluGrad" ||
        readers_.only(node.inputs[0], "FusedBatchNormGradV3") != gradient) {
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

  void emit(const Fused& fused) {
    const Node& norm = graph_.node(fused.norm);
    const graph::ScopeGuard scope(rebuild_.builder(), norm.origin, "");
    std::vector<Value> inputs;
    for (const Value& input : norm.inputs) inputs.push_back(rebuild_.moved(input));
    if (fused.add >= 0) inputs.push_back(rebuild_.moved(fused.side));
    // The name of what a reader of the graph knows: the activation rather than what led to it.
    const int id = rebuild_.builder().add_node(
        "_FusedBatchNormEx", std::move(inputs), attributes(fused), graph_.node(fused.relu).name);
    rebuild_.keep_control(fused.norm, id);
    for (int port = 1; port < 6; ++port) rebuild_.replace({fused.norm, port}, {id, port});
    rebuild_.replace({fused.relu, 0}, {id, 0});
  }

  void emit(const FusedGradient& fused) {
    const Node& node = graph_.node(fused.gradient);
    const graph::ScopeGuard scope(rebuild_.builder(), node.origin, "");
    const auto moved = [&](std::size_t i) { return rebuild_.moved(node.inputs[i]); };
    const int id =
        rebuild_.builder().add_node("BatchNormReluGrad",
                                    {rebuild_.moved(graph_.node(fused.relu_grad).inputs[0]),
                                     moved(1),
                                     moved(2),
                                     rebuild_.moved(fused.offset),
                                     moved(3),
                                     moved(4)},
                                    {{"epsilon", node.attrs.get<double>("epsilon")},
                                     {"is_training", node.attrs.get<bool>("is_training")}},
                                    node.name);
    rebuild_.keep_control(fused.gradient, id);
    for (int port = 0; port < 3; ++port) rebuild_.replace({fused.gradient, port}, {id, port});
  }

  const Graph& graph_;
  const graph::OpTable& ops_;
  const Runs& runs_;
  Readers readers_;
  Rebuild rebuild_;
  std::map<int, Fused> norms_;              ///< by the normalization
  std::map<int, FusedGradient> gradients_;  ///< by the gradient
  std::map<int, bool> absorbed_;
};

}  // namespace

Graph fuse_norms(const Graph& graph, const graph::OpTable& ops, const Runs& runs) {
  return NormFusion(graph, ops, runs).run();
}

}  // namespace halfstep::passes
