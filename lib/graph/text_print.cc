#include <fmt/format.h>

#include <algorithm>

#include "graph/text.h"
#include "graph/text_attr.h"
#include "graph/text_raw.h"

namespace halfstep::graph {
namespace {

std::string print_name(std::string_view name) {
  return is_bare_name(name) ? std::string(name) : print_quoted(name);
}

std::string print_value(const Graph& graph, Value value) {
  const std::string name = print_name(graph.node(value.node).name);
  return value.port == 0 ? name : fmt::format("{}:{}", name, value.port);
}

void print_node(const Graph& graph, const Node& node, std::string& text) {
  fmt::format_to(std::back_inserter(text), "{} = {}", print_name(node.name), print_name(node.op));
  std::string separator = "(";
  const auto add_input = [&](std::string_view input) {
    text += separator;
    text += input;
    separator = ", ";
  };
  for (const Value& input : node.inputs) add_input(print_value(graph, input));
  for (int control : node.control) add_input("^" + print_name(graph.node(control).name));
  if (separator != "(") text += ')';

  separator = " {";
  const auto add_attr = [&](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "{}{}: {}", separator, print_name(name), value);
    separator = ", ";
  };
  for (const auto& [name, value] : node.attrs) add_attr(name, print_attr(value));
  if (!node.origin.layer.empty()) add_attr("_layer", print_quoted(node.origin.layer));
  if (node.origin.phase != Phase::forward) add_attr("_phase", name(node.origin.phase));
  const bool shaped =
      std::ranges::any_of(node.outputs, [](const auto& type) { return type.shape.rank() > 0; });
  if (shaped) {
    std::string shapes;
    for (const TensorType& type : node.outputs) {
      shapes += (shapes.empty() ? "[" : ", ") + to_string(type.shape);
    }
    add_attr("_shape", shapes + "]");
  }
  if (separator != " {") text += '}';
  if (!node.device.empty()) text += " @" + node.device;
  text += '\n';
}

std::string print_ones(const Initializer& init) {
  if (init.ones_begin == init.ones_end) return {};
  return fmt::format(", ones_begin: {}, ones_end: {}", init.ones_begin, init.ones_end);
}

std::string print_slice(const std::optional<Slice>& slice) {
  if (!slice) return {};
  return fmt::format(", slice_of: {}, whole: {}, begin: {}",
                     print_quoted(slice->tensor),
                     to_string(slice->full_shape),
                     slice->begin);
}

void print_variable(const Variable& v, std::string& text) {
  fmt::format_to(std::back_inserter(text),
                 "variable {} {{dtype: {}, shape: {}, role: {}, trainable: {}, init: {}, a: {}, b: "
                 "{}, seed: {}{}, layer: {}{}}}\n",
                 print_name(v.name),
                 name(v.type.dtype),
                 to_string(v.type.shape),
                 name(v.role),
                 v.trainable,
                 k_initializer_kinds[static_cast<std::size_t>(v.initializer.kind)],
                 v.initializer.a,
                 v.initializer.b,
                 static_cast<std::int64_t>(v.initializer.seed),
                 print_ones(v.initializer),
                 print_quoted(v.layer),
                 print_slice(v.slice));
}

}  // namespace

std::string print_graph(const Graph& graph) {
  std::string text;
  for (const Variable& variable : graph.variables()) print_variable(variable, text);
  std::string preserved;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    print_node(graph, node, text);
    if (!node.preserve) continue;
    preserved += preserved.empty() ? "preserve " : ", ";
    preserved += print_name(node.name);
  }
  if (!preserved.empty()) text += preserved + "\n";
  for (const auto& [name, value] : graph.fetches()) {
    text += fmt::format("result {} {}\n", print_name(name), print_value(graph, value));
  }
  return text;
}

std::string print_graph(const ParsedGraph& parsed) {
  std::string text;
  for (const std::string& function : parsed.functions) {
    text += "function " + print_name(function) + "\n";
  }
  for (const auto& [op, dtype] : parsed.no_kernel) {
    text += fmt::format("no_kernel {} {}\n", print_name(op), name(dtype));
  }
  return text + print_graph(parsed.graph);
}

}  // namespace halfstep::graph
