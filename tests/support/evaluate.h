#pragma once
// Runs an executable graph without a plan, and compares gradient rules with finite differences.

#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/tensor.h"
#include "graph/graph.h"
#include "support/op_cases.h"

namespace halfstep::testing {

/// The elements of a Const node.
Tensor constant_tensor(const graph::Node& node);

/// Runs one node on given memory with `kernel`, its workspace filled with garbage.
void run_kernel(const backend::Kernel& kernel,
                const backend::NodeView& node,
                const backend::Capabilities& capabilities,
                std::span<const TensorView> in,
                std::span<const TensorView> out);

/// Runs all nodes in order, each by the first kernel that accepts it, every output in memory of its
/// own that was full of garbage, and returns copies of `fetches`. Placeholders are fed by node
/// name; `variables`, by the variable's name, are updated in place. Errors: InternalError when no
/// kernel accepts a node, or a feed or variable is missing or has another type than its node.
std::vector<Tensor> evaluate(const graph::Graph& graph,
                             const backend::Backend& backend,
                             std::span<const graph::Value> fetches,
                             const Tensors& feeds,
                             Tensors& variables);

/// The disagreement of a case's gradient with central differences in float64, as text; empty when
/// they agree. For y = sum(outputs * random weights), a few elements of each input are compared; an
/// input without gradient must be one that y does not depend on, or be listed in `no_gradient`.
std::string gradient_misses(const OpCase& c, const backend::Backend& backend);

}  // namespace halfstep::testing
