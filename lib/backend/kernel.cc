#include "backend/kernel.h"

namespace halfstep::backend {

std::optional<std::vector<std::int64_t>> NodeView::constant(std::size_t i) const {
  if (i >= node.inputs.size() || graph.node(node.inputs[i].node).op != "Const") return std::nullopt;
  return graph::InferContext{graph, node}.constant(i);
}

bool NodeView::all_floating(DType dtype) const {
  for (std::size_t i = 0; i < inputs(); ++i) {
    if (is_floating(input(i).dtype) && input(i).dtype != dtype) return false;
  }
  for (const graph::TensorType& type : node.outputs) {
    if (is_floating(type.dtype) && type.dtype != dtype) return false;
  }
  return true;
}

}  // namespace halfstep::backend
