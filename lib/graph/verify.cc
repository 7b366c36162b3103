#include "graph/graph.h"
#include "graph/op_handles.h"
#include "graph/ports.h"

namespace halfstep::graph {
namespace {

void verify_node(const Graph& graph, int id, std::string_view after) {
  const Node& node = graph.node(id);
  for (const Value& input : node.inputs) {
    require(input.node >= 0 && input.node < graph.size(),
            "after {}: {} has a dangling input",
            after,
            node.name);
    require(input.node < id || node.is(ops::k_merge),
            "after {}: {} reads {}, which comes after it",
            after,
            node.name,
            graph.node(input.node).name);
    const std::size_t ports = graph.node(input.node).outputs.size();
    require(input.port >= 0 && static_cast<std::size_t>(input.port) < ports,
            "after {}: {} reads port {} of {}, which has {}",
            after,
            node.name,
            input.port,
            graph.node(input.node).name,
            ports);
  }
  for (int control : node.control) {
    require(control >= 0 && control < graph.size(),
            "after {}: {} has a dangling control input",
            after,
            node.name);
  }
  if (node.def == nullptr) return;
  const auto wanted = input_dtypes(*node.def, node.attrs);
  require(wanted.has_value(), "after {}: {} lacks a type attribute", after, node.name);
  require(fits_inputs(*node.def, wanted->size(), node.inputs.size()),
          "after {}: {} has {} inputs, wanted {}",
          after,
          node.name,
          node.inputs.size(),
          wanted->size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const DType given = graph.type(node.inputs[i]).dtype;
    require(given == (*wanted)[i],
            "after {}: input {} of {} ({}) must be {}, got {}",
            after,
            i,
            node.name,
            node.op,
            halfstep::name((*wanted)[i]),
            halfstep::name(given));
  }
  for (const TypeAttr& t : node.def->types) {
    const AttrValue* value = node.attrs.find(t.name);
    require(value != nullptr, "after {}: {} lacks attribute {}", after, node.name, t.name);
    if (const auto* dtype = std::get_if<DType>(value)) {
      require(t.allowed.contains(*dtype),
              "after {}: {} of {} ({}) may not be {}",
              after,
              t.name,
              node.name,
              node.op,
              halfstep::name(*dtype));
    }
  }
  const auto outputs = output_dtypes(*node.def, node.attrs);
  require(outputs.has_value() && outputs->size() == node.outputs.size(),
          "after {}: {} has the wrong number of outputs",
          after,
          node.name);
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    require(node.outputs[i].dtype == (*outputs)[i],
            "after {}: output {} of {} must be {}, is {}",
            after,
            i,
            node.name,
            halfstep::name((*outputs)[i]),
            halfstep::name(node.outputs[i].dtype));
  }
  if (node.def->infer == nullptr) return;
  try {
    const std::vector<Shape> shapes = node.def->infer({node, inputs_of(graph, node)});
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      require(shapes[i] == node.outputs[i].shape,
              "after {}: output {} of {} must be {}, is {}",
              after,
              i,
              node.name,
              to_string(shapes[i]),
              to_string(node.outputs[i].shape));
    }
  } catch (const ShapeError& error) {
    require(false, "after {}: {}: {}", after, node.name, error.what());
  }
}

}  // namespace

void verify(const Graph& graph, std::string_view after) {
  for (int id = 0; id < graph.size(); ++id) {
    require(graph.find(graph.node(id).name) == id,
            "after {}: node name '{}' is not unique",
            after,
            graph.node(id).name);
    verify_node(graph, id, after);
  }
  for (const auto& [key, value] : graph.fetches()) {
    require(value.node >= 0 && value.node < graph.size(),
            "after {}: fetch '{}' is dangling",
            after,
            key);
  }
}

}  // namespace halfstep::graph
