#include "rewritten.h"

#include <stdexcept>

namespace halfstep::precision {
namespace {

constexpr std::string_view k_suffix = "-AutoMixedPrecision";

std::string brief(std::string text) {
  for (std::size_t at = text.find(k_suffix); at != std::string::npos; at = text.find(k_suffix)) {
    text.erase(at, k_suffix.size());
  }
  return text;
}

void append(std::string& text, std::string_view separator, std::string_view part) {
  if (!text.empty()) text += separator;
  text += part;
}

bool has_half(const graph::Node& node) {
  for (const auto& [name, value] : node.attrs) {
    if (const auto* dtype = std::get_if<DType>(&value); dtype && is_half(*dtype)) return true;
    const auto* list = std::get_if<std::vector<DType>>(&value);
    for (DType dtype : list ? *list : std::vector<DType>{}) {
      if (is_half(dtype)) return true;
    }
  }
  return false;
}

}  // namespace

const graph::Node& Rewritten::node(std::string_view name) const {
  const int id = result().graph.find(name);
  if (id < 0) throw std::runtime_error("no node " + std::string(name));
  return result().graph.node(id);
}

std::string Rewritten::halves() const {
  std::string text;
  for (int id : result().nodes) {
    const graph::Node& node = result().graph.node(id);
    if (has_half(node)) append(text, " ", node.name);
  }
  return text;
}

std::string Rewritten::casts() const {
  std::string text;
  for (const InsertedCast& cast : result().casts) append(text, " ", brief(cast.name));
  return text;
}

std::string Rewritten::type(std::string_view name, std::string_view attr) const {
  const graph::AttrValue* value = node(name).attrs.find(attr);
  if (value == nullptr) return "";
  if (const auto* dtype = std::get_if<DType>(value)) return std::string(halfstep::name(*dtype));
  std::string text;
  for (DType dtype : std::get<std::vector<DType>>(*value)) append(text, ",", halfstep::name(dtype));
  return text;
}

const PaintedVertex* Rewritten::vertex(std::string_view node, std::string_view attr) const {
  for (const PaintedVertex& vertex : result().paint) {
    if (report.original.node(vertex.node).name == node && vertex.attr == attr) return &vertex;
  }
  return nullptr;
}

std::string Rewritten::paint(std::string_view node, std::string_view attr) const {
  const PaintedVertex* v = vertex(node, attr);
  if (v == nullptr) return "absent";
  return std::string(name(v->paint)) + " " + std::string(name(v->rule));
}

std::string Rewritten::reason(std::string_view node, std::string_view attr) const {
  const PaintedVertex* v = vertex(node, attr);
  return v == nullptr ? "absent" : v->reason;
}

std::string Rewritten::inputs(std::string_view name) const {
  std::string text;
  for (const graph::Value& input : node(name).inputs) {
    append(
        text, ", ", brief(result().graph.node(input.node).name) + ":" + std::to_string(input.port));
  }
  return text;
}

RewriteOptions in_mode(Mode mode) {
  RewriteOptions options;
  options.mode = mode;
  return options;
}

ListEdits edit(List list, std::vector<std::string> add, std::vector<std::string> remove) {
  ListEdits edits;
  for (const std::string& op : add) edits.add[static_cast<std::size_t>(list)].push_back({op, {}});
  for (const std::string& op : remove) {
    edits.remove[static_cast<std::size_t>(list)].push_back({op, {}});
  }
  return edits;
}

}  // namespace halfstep::precision
