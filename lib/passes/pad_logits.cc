#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/ops/fused.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

bool is_matmul(const Node& node) {
  return node.is(graph::ops::k_matmul, graph::ops::k_fused_matmul);
}

bool transposes(const Node& node, bool a, bool b) {
  return node.attrs.get<bool>("transpose_a") == a && node.attrs.get<bool>("transpose_b") == b;
}

/// The nodes around one SoftmaxLoss whose operands or results get longer rows.
class PaddedLogits {
 public:
  PaddedLogits(Rewriter& rewriter, int loss, std::int64_t columns)
      : rewriter_(rewriter), loss_(loss), columns_(columns) {}

  /// Whether all readers of the padded values can read them.
  bool find() {
    const Node& loss = rewriter_.graph().node(loss_);
    const Value logits = loss.inputs[0];
    const Node& matmul = rewriter_.node(logits);
    const bool biased = matmul.is(graph::ops::k_fused_matmul);
    if (!is_matmul(matmul) || !transposes(matmul, false, false) ||
        rewriter_.users(logits) != std::vector{loss_} ||
        (biased &&
         matmul.attrs.get<std::string>("epilogue") != graph::ops::fused_epilogues::k_bias)) {
      return false;
    }
    weights_ = matmul.inputs[1];
    nodes_ = {logits.node, loss_};
    const std::size_t gradient = loss.attrs.get<std::string>("forms").find('g');
    if (gradient != std::string::npos && !find_backward({loss_, static_cast<int>(gradient)})) {
      return false;
    }
    return find_copy(weights_) && (!biased || find_copy(matmul.inputs[2])) &&
           std::none_of(nodes_.begin(), nodes_.end(), [&](int id) {
             return rewriter_.has_control_edge(id);
           });
  }

  /// The nodes with longer rows, in order of execution.
  Replacement replacement() {
    Replacement nodes;
    for (const int id : ordered()) {
      const Node& old = rewriter_.graph().node(id);
      NewNode node{.op = old.op, .inputs = {}, .attrs = old.attrs};
      for (const Value& input : old.inputs) {
        const auto at = index_.find(input.node);
        node.inputs.push_back(at == index_.end() ? input : new_value(at->second, input.port));
      }
      if (old.is(graph::ops::k_cast_variable)) node.attrs.set("columns", columns_);
      if (id == loss_) node.attrs.set("classes", rewriter_.type(old.inputs[0]).shape[1]);
      if (masked_.contains(id)) node.attrs.set("partner_k", columns_);
      node.at = node.origin = node.named = id;
      node.results = first_outputs(id, old.outputs.size());
      index_[id] = static_cast<int>(nodes.size());
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  std::vector<int> ordered() const {
    std::vector<int> ids(nodes_.begin(), nodes_.end());
    std::sort(ids.begin(), ids.end(), [&](int a, int b) { return rewriter_.before(a, b); });
    return ids;
  }

 private:
  /// The readers of the gradient of the logits: the matmuls of the layer and the sums of its bias.
  bool find_backward(Value dy) {
    for (const int user : rewriter_.users(dy)) {
      if (user < 0) return false;
      const Node& node = rewriter_.graph().node(user);
      const bool matmul = is_matmul(node);
      if (matmul && transposes(node, true, false) && node.inputs[1] == dy && node.inputs[0] != dy) {
        if (!find_gradients(user)) return false;
      } else if (node.is(graph::ops::k_bias_add_grad) && is_nhwc(node)) {
        if (!find_gradients(user)) return false;
      } else if (matmul && transposes(node, false, true) && node.inputs[0] == dy &&
                 node.inputs[1] == weights_) {
        nodes_.insert(user);
        // Its last input is the mask of a Relu: the matmul that writes the mask computes the
        // features, with which the gradient of the weights multiplies dy.
        if (node.is(graph::ops::k_fused_matmul)) masked_.insert(node.inputs.back().node);
      } else {
        return false;
      }
    }
    nodes_.insert(masked_.begin(), masked_.end());
    return true;
  }

  /// The readers of a weight's or a bias's gradient.
  bool find_gradients(int id) {
    nodes_.insert(id);
    const Node& node = rewriter_.graph().node(id);
    for (int port = 0; port < static_cast<int>(node.outputs.size()); ++port) {
      for (const int user : rewriter_.users({id, port})) {
        if (user < 0 || !rewriter_.graph().node(user).is(graph::ops::k_all_finite,
                                                         graph::ops::k_squared_norms,
                                                         graph::ops::k_grouped_update)) {
          return false;
        }
        nodes_.insert(user);
      }
    }
    return true;
  }

  /// The 16-bit copy of a variable: its readers are among the nodes, and an update writes it by a
  /// gradient that is.
  bool find_copy(Value copy) {
    const Node& node = rewriter_.node(copy);
    if (!node.is(graph::ops::k_cast_variable)) return false;
    for (const int user : rewriter_.users(copy)) {
      if (user < 0 || !nodes_.contains(user)) return false;
      const Node& update = rewriter_.graph().node(user);
      if (!update.is(graph::ops::k_grouped_update)) continue;
      const auto ports = graph::ops::grouped_update_ports(update.attrs);
      for (std::size_t t = 0; t < ports.tensors; ++t) {
        const bool updates = update.inputs[ports.handle(t, 0)] == node.inputs[0];
        if (updates && !nodes_.contains(update.inputs[ports.gradients + t].node)) return false;
      }
    }
    nodes_.insert(copy.node);
    return true;
  }

  const Rewriter& rewriter_;
  int loss_;
  std::int64_t columns_;
  Value weights_ = {};
  std::set<int> nodes_ = {};
  std::set<int> masked_ = {};      ///< matmuls whose partner has a longer reduction
  std::map<int, int> index_ = {};  ///< in the replacement
};

}  // namespace

Graph pad_logits(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  for (int id = 0; id < graph.size(); ++id) {
    if (!graph.node(id).is(graph::ops::k_softmax_loss)) continue;
    const graph::TensorType logits = rewriter.type(rewriter.graph().node(id).inputs[0]);
    const std::int64_t over = logits.shape[1] % target.row_multiple;
    if (!is_half(logits.dtype) || over == 0) continue;
    PaddedLogits padded(rewriter, id, logits.shape[1] + target.row_multiple - over);
    if (!padded.find()) continue;
    const std::vector<int> old = padded.ordered();
    if (rewriter.add(padded.replacement(), id) < 0) continue;
    for (const int node : old) rewriter.remove(node);
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
