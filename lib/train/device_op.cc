#include "train/device_op.h"

#include <fmt/format.h>

#include "core/error.h"
#include "graph/ops/ops.h"

namespace halfstep::train {

DeviceOp::DeviceOp(const backend::Backend& backend,
                   std::string_view op,
                   const std::vector<Port>& inputs,
                   graph::Attrs attrs) {
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  std::vector<graph::Value> values;
  for (const Port& port : inputs) {
    const std::string name = fmt::format("input{}", values.size());
    if (port.variable) {
      graph::Variable variable;
      variable.name = name;
      variable.type = {port.dtype, port.shape};
      values.push_back(b.variable(std::move(variable)));
    } else {
      values.push_back(b.placeholder(name, port.dtype, port.shape));
    }
  }
  const int id = b.add_node(op, values, std::move(attrs));
  const backend::NodeView node{graph, graph.node(id)};
  const backend::Choice choice = backend::choose(backend, node);
  require(choice.kernel != nullptr, "no kernel of {} runs {}", backend.name, op);
  backend::Prepared prepared = backend.prepare(*choice.kernel, node);
  require(prepared.workspace_bytes == 0, "{} wants a workspace", op);
  launch_ = std::move(prepared.launch);
}

void DeviceOp::run(std::span<const TensorView> in, std::span<const TensorView> out) const {
  launch_->run({in, out, nullptr});
}

}  // namespace halfstep::train
