#include "backend/kernel.h"

#include "graph/op_handles.h"

namespace halfstep::backend {

const graph::Node& NodeView::producer(std::size_t i) const {
  require(inputs_[i].producer != nullptr, "input {} of {} is not known", i, node.op);
  return *inputs_[i].producer;
}

bool NodeView::is_made_by(std::size_t i, graph::OpHandle op) const {
  return inputs_[i].producer != nullptr && inputs_[i].producer->is(op);
}

std::optional<std::vector<std::int64_t>> NodeView::constant(std::size_t i) const {
  return i < inputs() ? inputs_[i].constant() : std::nullopt;
}

}  // namespace halfstep::backend
