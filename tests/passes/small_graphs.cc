#include "passes/small_graphs.h"

#include <fmt/format.h>

#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "graph/text.h"

namespace halfstep::test {
namespace {

std::string text(const graph::Graph& graph, const graph::Value& value) {
  const std::string& name = graph.node(value.node).name;
  return value.port == 0 ? name : fmt::format("{}:{}", name, value.port);
}

}  // namespace

graph::Graph read_graph(std::string_view text) {
  graph::Graph graph = graph::parse_graph(text, "test", graph::op_table()).graph;
  graph::verify(graph, "the test");
  return graph;
}

std::string outline(const graph::Graph& graph) {
  std::string lines;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    std::string inputs;
    for (const graph::Value& input : node.inputs) {
      inputs += (inputs.empty() ? "" : ", ") + text(graph, input);
    }
    for (int control : node.control) {
      inputs += (inputs.empty() ? "^" : ", ^") + graph.node(control).name;
    }
    lines += fmt::format("{} = {}({})\n", node.name, node.op, inputs);
  }
  for (const auto& [name, value] : graph.fetches()) {
    lines += fmt::format("result {} {}\n", name, text(graph, value));
  }
  return lines;
}

std::vector<const graph::Node*> nodes(const graph::Graph& graph, std::string_view op) {
  std::vector<const graph::Node*> found;
  for (int id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == op) found.push_back(&graph.node(id));
  }
  return found;
}

std::size_t count(const graph::Graph& graph, std::string_view op) {
  return nodes(graph, op).size();
}

}  // namespace halfstep::test
