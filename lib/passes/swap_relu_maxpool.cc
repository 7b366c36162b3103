#include <map>
#include <optional>
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

/// A Relu and the nodes it is swapped with; the gradients are -1 where there are none.
struct Pooled {
  int relu = -1;
  int pool = -1;
  int pool_grad = -1;
  int relu_grad = -1;
};

class ReluMaxPoolSwap {
 public:
  ReluMaxPoolSwap(const Graph& graph, const graph::OpTable& ops)
      : graph_(graph), users_(graph), rewriter_(graph, ops) {}

  Graph run() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).is(graph::ops::k_relu)) continue;
      if (const auto pooled = find(id)) take(*pooled);
    }
    for (int id = 0; id < graph_.size(); ++id) {
      if (const auto it = by_pool_.find(id); it != by_pool_.end()) {
        emit_forward(it->second);
      } else if (const auto grad = by_gradient_.find(id); grad != by_gradient_.end()) {
        emit_gradient(grad->second);
      } else if (!absorbed_.contains(id)) {
        rewriter_.copy(id);
      }
    }
    return prune(rewriter_.finish());
  }

 private:
  std::optional<Pooled> find(int relu) const {
    Pooled p{.relu = relu};
    const Value features{relu, 0};
    for (const int user : users_.of(features)) {
      if (user < 0) return std::nullopt;
      const std::string& op = graph_.node(user).op;
      int& place = op == graph::ops::k_max_pool        ? p.pool
                   : op == graph::ops::k_max_pool_grad ? p.pool_grad
                                                       : p.relu_grad;
      if ((&place == &p.relu_grad && op != graph::ops::k_relu_grad) || place >= 0)
        return std::nullopt;
      place = user;
    }
    if (p.pool < 0 || (p.pool_grad < 0) != (p.relu_grad < 0)) return std::nullopt;
    const Shape& pooled = graph_.node(p.pool).outputs[0].shape;
    if (pooled.elements() >= graph_.type(features).shape.elements()) return std::nullopt;
    if (p.pool_grad < 0) return p;
    const Node& gradient = graph_.node(p.pool_grad);
    const bool chained =
        gradient.inputs[0] == features && gradient.inputs[1] == Value{p.pool, 0} &&
        users_.single_user({p.pool_grad, 0}, graph::ops::k_relu_grad) == p.relu_grad &&
        graph_.node(p.relu_grad).inputs[1] == features &&
        gradient.attrs.get<std::vector<std::int64_t>>("ksize") ==
            graph_.node(p.pool).attrs.get<std::vector<std::int64_t>>("ksize");
    return chained ? std::optional(p) : std::nullopt;
  }

  void take(const Pooled& p) {
    absorbed_.insert(p.relu);
    by_pool_[p.pool] = p;
    if (p.pool_grad < 0) return;
    absorbed_.insert(p.relu_grad);
    by_gradient_[p.pool_grad] = p;
  }

  /// Adds a copy of old node `id` with other inputs.
  Value add(int id, std::vector<Value> inputs) {
    const Node& node = graph_.node(id);
    const graph::ScopeGuard scope(rewriter_.builder(), node.origin, "");
    const Value value = rewriter_.builder().add(node.op, std::move(inputs), node.attrs, node.name);
    rewriter_.keep_control(id, value.node);
    return value;
  }

  void emit_forward(const Pooled& p) {
    const Value x = rewriter_.mapped(graph_.node(p.relu).inputs[0]);
    const Value largest = largest_[p.pool] = add(p.pool, {x});
    rewriter_.replace({p.pool, 0}, add(p.relu, {largest}));
  }

  void emit_gradient(const Pooled& p) {
    const Value x = rewriter_.mapped(graph_.node(p.relu).inputs[0]);
    const Value dy = rewriter_.mapped(graph_.node(p.pool_grad).inputs[2]);
    const Value masked = add(p.relu_grad, {dy, rewriter_.mapped({p.pool, 0})});
    rewriter_.replace({p.relu_grad, 0}, add(p.pool_grad, {x, largest_.at(p.pool), masked}));
  }

  const Graph& graph_;
  Users users_;
  GraphRewriter rewriter_;
  std::map<int, Pooled> by_pool_, by_gradient_;
  std::set<int> absorbed_;
  std::map<int, Value> largest_;  ///< by the old pool: the result of the new one
};

}  // namespace

Graph swap_relu_maxpool(const Graph& graph, const Target& /*target*/) {
  const graph::OpTable& ops = graph::op_table();
  return ReluMaxPoolSwap(graph, ops).run();
}

}  // namespace halfstep::passes
