#include "precision/graph_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/printable.h"
#include "graph/ops/ops.h"
#include "graph/text.h"

namespace halfstep::precision {
namespace {

using graph::AttrValue;
using graph::Graph;
using graph::Node;
using Json = nlohmann::ordered_json;

/// Type attributes in the order of the op's signature; for an unknown op, its attributes that are
/// dtypes.
std::vector<std::pair<std::string, AttrValue>> type_attrs(const Node& node) {
  std::vector<std::pair<std::string, AttrValue>> result;
  if (node.def != nullptr) {
    for (const graph::TypeAttr& type : node.def->types) {
      if (const AttrValue* value = node.attrs.find(type.name))
        result.emplace_back(type.name, *value);
    }
    return result;
  }
  for (const auto& [name, value] : node.attrs) {
    if (std::holds_alternative<DType>(value) || std::holds_alternative<std::vector<DType>>(value)) {
      result.emplace_back(name, value);
    }
  }
  return result;
}

std::vector<std::string_view> dtype_words(const AttrValue& value) {
  if (const auto* dtype = std::get_if<DType>(&value)) return {name(*dtype)};
  std::vector<std::string_view> words;
  for (DType dtype : std::get<std::vector<DType>>(value)) words.push_back(name(dtype));
  return words;
}

Json json_nodes(const GraphReport& report) {
  Json nodes = Json::array();
  for (int id : report.result.nodes) {
    const Node& node = report.result.graph.node(id);
    Json attrs = Json::object();
    for (const auto& [key, value] : type_attrs(node)) {
      const std::vector<std::string_view> words = dtype_words(value);
      if (std::holds_alternative<DType>(value)) {
        attrs[key] = words.front();
      } else {
        attrs[key] = words;
      }
    }
    nodes.push_back({{"name", node.name}, {"op", node.op}, {"attrs", std::move(attrs)}});
  }
  return nodes;
}

Json json_casts(const RewriteResult& result) {
  Json casts = Json::array();
  for (const InsertedCast& cast : result.casts) {
    casts.push_back({{"name", cast.name},
                     {"from", name(cast.from)},
                     {"to", name(cast.to)},
                     {"input", cast.input},
                     {"consumers", cast.consumers}});
  }
  return casts;
}

Json json_paint(const GraphReport& report) {
  Json paint = Json::array();
  for (const PaintedVertex& vertex : report.result.paint) {
    paint.push_back({{"node", report.original.node(vertex.node).name},
                     {"attr", vertex.attr},
                     {"paint", name(vertex.paint)},
                     {"step", name(vertex.rule)},
                     {"reason", vertex.reason}});
  }
  return paint;
}

/// The most informative paint of a node: that of its first float32 vertex, else its first.
std::map<int, const PaintedVertex*> main_paint(const GraphReport& report) {
  std::map<int, const PaintedVertex*> main;
  for (const PaintedVertex& vertex : report.result.paint) {
    const PaintedVertex*& best = main[vertex.node];
    if (best == nullptr || (best->paint == Paint::none && vertex.paint != Paint::none)) {
      best = &vertex;
    }
  }
  return main;
}

std::string attrs_text(const Node& node) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : type_attrs(node)) {
    parts.push_back(fmt::format("{}={}", key, fmt::join(dtype_words(value), ",")));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string summary(const GraphReport& report) {
  const RewriteResult& result = report.result;
  std::string text = fmt::format("{}: {}", name(report.mode), name(result.status));
  if (!result.message.empty()) text += fmt::format(" ({})", result.message);
  RewriteOptions options;
  options.mode = report.mode;
  const std::string_view target = name(options.target());
  return text + fmt::format(
                    "; {} of {} nodes converted ({} type attributes), {} casts, {} of them to {} "
                    "of other values than constants and variables\n",
                    result.nodes_converted,
                    result.nodes.size(),
                    result.converted_attrs,
                    result.casts.size(),
                    result.casts_counted,
                    target);
}

}  // namespace

GraphReport explain_graph(std::string_view text,
                          std::string_view file_name,
                          const RewriteOptions& options) {
  const graph::OpTable& ops = graph::op_table();
  graph::ParsedGraph parsed = graph::parse_graph(text, file_name, ops);
  RewriteOptions used = options;
  used.functions.insert(parsed.functions.begin(), parsed.functions.end());
  used.supports = [&](std::string_view op, DType dtype) {
    if (parsed.no_kernel.contains({std::string(op), dtype})) return false;
    return !options.supports || options.supports(op, dtype);
  };
  UnknownEdits unknown = unknown_ops(used.edits, ops, used.functions);
  if (!unknown.errors.empty()) throw UserError(ErrorKind::config, std::move(unknown.errors));

  GraphReport report;
  report.mode = options.mode;
  report.warnings = std::move(unknown.warnings);
  report.result = rewrite(parsed.graph, ops, used);
  report.original = std::move(parsed.graph);
  return report;
}

std::string to_json(const GraphReport& report) {
  const RewriteResult& result = report.result;
  Json json;
  json["schema_version"] = 1;
  json["kind"] = "graph_rewrite";
  json["mode"] = name(report.mode);
  json["status"] = name(result.status);
  json["message"] = result.message.empty() ? Json(nullptr) : Json(result.message);
  json["nodes"] = json_nodes(report);
  json["casts"] = json_casts(result);
  json["converted_attrs"] = result.converted_attrs;
  json["casts_counted"] = result.casts_counted;
  json["paint"] = json_paint(report);
  // Names come from a user's file and may not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_table(const GraphReport& report) {
  const std::map<int, const PaintedVertex*> paint = main_paint(report);
  struct Line {
    std::string node, op, attrs, rule, reason;
  };
  std::vector<Line> lines{{"node", "op", "types", "step", "reason"}};
  for (std::size_t i = 0; i < report.result.nodes.size(); ++i) {
    const Node& node = report.result.graph.node(report.result.nodes[i]);
    const auto it = paint.find(static_cast<int>(i));
    const bool known = it != paint.end();
    lines.push_back({printable(node.name),
                     printable(node.op),
                     printable(attrs_text(node)),
                     known ? std::string(name(it->second->rule)) : "",
                     known ? printable(it->second->reason) : ""});
  }
  std::size_t widths[4] = {};
  for (const Line& line : lines) {
    widths[0] = std::max(widths[0], line.node.size());
    widths[1] = std::max(widths[1], line.op.size());
    widths[2] = std::max(widths[2], std::min<std::size_t>(line.attrs.size(), 48));
    widths[3] = std::max(widths[3], line.rule.size());
  }
  std::string text;
  for (const Line& line : lines) {
    std::string row = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {}",
                                  line.node,
                                  widths[0],
                                  line.op,
                                  widths[1],
                                  line.attrs,
                                  widths[2],
                                  line.rule,
                                  widths[3],
                                  line.reason);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  if (!report.result.casts.empty()) text += "\ncasts\n";
  for (const InsertedCast& cast : report.result.casts) {
    text += printable(fmt::format("{}: {} -> {}, {} for {}",
                                  cast.name,
                                  name(cast.from),
                                  name(cast.to),
                                  cast.input,
                                  fmt::join(cast.consumers, ", "))) +
            "\n";
  }
  return text + "\n" + printable_lines(summary(report));
}

std::string dot_text(std::string_view text) {
  std::string result = "\"";
  for (char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string to_dot(const GraphReport& report) {
  const Graph& graph = report.result.graph;
  std::vector<const PaintedVertex*> paint(static_cast<std::size_t>(graph.size()));
  for (const auto& [id, vertex] : main_paint(report)) {
    paint[static_cast<std::size_t>(report.result.nodes[static_cast<std::size_t>(id)])] = vertex;
  }
  std::vector<bool> inserted(static_cast<std::size_t>(graph.size()));
  for (const InsertedCast& cast : report.result.casts) {
    inserted[static_cast<std::size_t>(cast.node)] = true;
  }
  std::string text = "digraph rewrite {\n  node [shape=box, style=filled, fillcolor=white];\n";
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const PaintedVertex* vertex = paint[static_cast<std::size_t>(id)];
    if (inserted[static_cast<std::size_t>(id)]) {
      text += fmt::format("  n{} [label={}, shape=ellipse, fillcolor=lightyellow];\n",
                          id,
                          dot_text(name(node.outputs[0].dtype)));
      continue;
    }
    std::string_view color = "white";
    if (vertex != nullptr && vertex->paint == Paint::allow) color = "palegreen";
    if (vertex != nullptr && vertex->paint == Paint::deny) color = "lightcoral";
    text += fmt::format("  n{} [label={}, fillcolor={}, tooltip={}];\n",
                        id,
                        dot_text(fmt::format("{} ({})", node.name, node.op)),
                        color,
                        dot_text(vertex == nullptr ? "" : vertex->reason));
  }
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    for (const graph::Value& input : node.inputs) {
      text += fmt::format(
          "  n{} -> n{} [label={}];\n", input.node, id, dot_text(name(graph.type(input).dtype)));
    }
    for (int control : node.control) {
      text += fmt::format("  n{} -> n{} [style=dashed];\n", control, id);
    }
  }
  return text + "}\n";
}

}  // namespace halfstep::precision
