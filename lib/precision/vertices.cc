#include "precision/vertices.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ports.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;
using graph::PortType;
using graph::Value;

class Builder {
 public:
  Builder(const Graph& graph, const std::set<std::string>& functions)
      : graph_(graph), functions_(functions) {}

  TypeGraph run() {
    const auto nodes = static_cast<std::size_t>(graph_.size());
    result_.inputs.resize(nodes);
    result_.outputs.resize(nodes);
    for (int id = 0; id < graph_.size(); ++id) {
      result_.first.push_back(result_.size());
      const Node& node = graph_.node(id);
      if (node.def != nullptr) {
        add_node(id, node);
      } else {
        add_function(id, node);
      }
    }
    result_.first.push_back(result_.size());
    result_.fanin.resize(result_.vertices.size());
    result_.fanout.resize(result_.vertices.size());
    for (int id = 0; id < graph_.size(); ++id) {
      const std::vector<int>& to = inputs(id);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const Value from = graph_.node(id).inputs[i];
        result_.connect(outputs(from.node)[static_cast<std::size_t>(from.port)], to[i]);
      }
    }
    return std::move(result_);
  }

 private:
  std::vector<int>& inputs(int id) { return result_.inputs[static_cast<std::size_t>(id)]; }
  std::vector<int>& outputs(int id) { return result_.outputs[static_cast<std::size_t>(id)]; }

  void add_node(int id, const Node& node) {
    const std::vector<PortType> in = graph::input_port_types(*node.def, node.attrs);
    const std::vector<PortType> out = graph::output_port_types(*node.def, node.attrs);
    if (!graph::fits_inputs(*node.def, in.size(), node.inputs.size())) {
      throw RewriteFailure(
          fmt::format("Expected {} node {} to have {} non-control input(s), but got {}",
                      node.op,
                      node.name,
                      in.size(),
                      node.inputs.size()));
    }
    for (const graph::TypeAttr& type : node.def->types) {
      const graph::AttrValue* value = node.attrs.find(type.name);
      if (value == nullptr) {
        throw RewriteFailure(
            fmt::format("Type attribute {} is not present in node {}", type.name, node.name));
      }
      if (const auto* list = std::get_if<std::vector<DType>>(value)) {
        for (std::size_t i = 0; i < list->size(); ++i) {
          add({id, type.name, static_cast<int>(i), std::nullopt, (*list)[i]});
        }
      } else {
        add({id, type.name, -1, std::nullopt, std::get<DType>(*value)});
      }
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs(id).push_back(vertex_of(id, in[i]));
    for (const PortType& port : out) outputs(id).push_back(vertex_of(id, port));
  }

  /// The ports of a function take the dtypes of the values around it.
  void add_function(int id, const Node& node) {
    if (!functions_.contains(node.op)) {
      throw RewriteFailure(
          fmt::format("Op type not registered '{}' in node {}", node.op, node.name));
    }
    for (const Value& input : node.inputs) {
      inputs(id).push_back(vertex_of(id, {{}, -1, graph_.type(input).dtype}));
    }
    for (const graph::TensorType& output : node.outputs) {
      outputs(id).push_back(vertex_of(id, {{}, -1, output.dtype}));
    }
  }

  int add(Vertex vertex) {
    result_.vertices.push_back(std::move(vertex));
    return result_.size() - 1;
  }

  /// The vertex of a port; the vertex of a fixed dtype is created on first use.
  int vertex_of(int id, const PortType& port) {
    for (int v = result_.first[static_cast<std::size_t>(id)]; v < result_.size(); ++v) {
      const Vertex& vertex = result_.vertex(v);
      if (vertex.attr == port.attr && vertex.index == port.index && vertex.fixed == port.fixed) {
        return v;
      }
    }
    require(port.fixed.has_value(), "{}: no vertex for '{}'", graph_.node(id).name, port.attr);
    return add({id, {}, -1, port.fixed, *port.fixed});
  }

  const Graph& graph_;
  const std::set<std::string>& functions_;
  TypeGraph result_;
};

void insert_sorted(std::vector<int>& values, int value) {
  const auto it = std::lower_bound(values.begin(), values.end(), value);
  if (it == values.end() || *it != value) values.insert(it, value);
}

}  // namespace

std::string Vertex::label() const {
  if (fixed) return std::string(name(*fixed));
  return index < 0 ? attr : fmt::format("{}[{}]", attr, index);
}

int TypeGraph::find(int node, std::string_view attr) const {
  const auto n = static_cast<std::size_t>(node);
  for (int v = first[n]; v < first[n + 1]; ++v) {
    if (!vertex(v).fixed && vertex(v).index < 0 && vertex(v).attr == attr) return v;
  }
  return -1;
}

int TypeGraph::find(int node, DType fixed) const {
  const auto n = static_cast<std::size_t>(node);
  for (int v = first[n]; v < first[n + 1]; ++v) {
    if (vertex(v).fixed == fixed) return v;
  }
  return -1;
}

void TypeGraph::connect(int from, int to) {
  insert_sorted(fanout[static_cast<std::size_t>(from)], to);
  insert_sorted(fanin[static_cast<std::size_t>(to)], from);
}

TypeGraph build_type_graph(const Graph& graph, const std::set<std::string>& functions) {
  return Builder(graph, functions).run();
}

bool admits(const Node& node, const Vertex& vertex, DType dtype) {
  if (vertex.fixed) return *vertex.fixed == dtype;
  if (node.def == nullptr) return false;
  if (vertex.attr == "U" && node.op.find("FusedBatchNorm") != std::string::npos) {
    return dtype == DType::float32;
  }
  const graph::TypeAttr* type = node.def->type_attr(vertex.attr);
  return type != nullptr && type->allowed.contains(dtype);
}

}  // namespace halfstep::precision
