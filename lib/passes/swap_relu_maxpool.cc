#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

graph::Graph swap_relu_maxpool(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  Value x, relu, pool, dy, pool_grad, relu_grad;
  const auto smaller = [&] {
    return rewriter.type(pool).shape.elements() < rewriter.type(relu).shape.elements();
  };
  // A copy of a node with other inputs.
  const auto copy = [&](Value value, std::vector<Value> inputs, Value at, Value result) {
    const Node& node = rewriter.node(value);
    NewNode now{.op = node.op, .inputs = std::move(inputs), .attrs = node.attrs};
    now.at = at.node;
    now.origin = now.named = value.node;
    if (result.valid()) now.results = {{result}};
    return now;
  };

  const Pattern max_pool_grad = op(graph::ops::k_max_pool_grad,
                                   {op(graph::ops::k_relu, {any(x)}).as(relu),
                                    op(graph::ops::k_max_pool, {same(relu)}).as(pool),
                                    any(dy)});
  const Pattern both =
      op(graph::ops::k_relu_grad, {max_pool_grad.as(pool_grad).used_once(), same(relu)});
  rewriter.apply(both.as(relu_grad), [&]() -> Replacement {
    const auto window = [&](Value value) {
      return rewriter.node(value).attrs.get<std::vector<std::int64_t>>("ksize");
    };
    // The pooling, its gradient and the ReluGrad are all that read the Relu.
    const bool alone = rewriter.users(relu).size() == 3;
    if (!alone || !smaller() || window(pool) != window(pool_grad)) return {};
    return {copy(pool, {x}, pool, {}),
            copy(relu, {new_value(0)}, pool, pool),
            copy(relu_grad, {dy, new_value(1)}, pool_grad, {}),
            copy(pool_grad, {x, new_value(0), new_value(2)}, pool_grad, relu_grad)};
  });
  const Pattern forward =
      op(graph::ops::k_max_pool, {op(graph::ops::k_relu, {any(x)}).as(relu).used_once()});
  rewriter.apply(forward.as(pool), [&]() -> Replacement {
    if (!smaller()) return {};
    return {copy(pool, {x}, pool, {}), copy(relu, {new_value(0)}, pool, pool)};
  });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
