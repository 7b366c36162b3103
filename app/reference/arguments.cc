// Formatting of arguments: types from registries are shown by the names of their pages.

#include <fmt/format.h>

#include "reference/reference.h"

namespace halfstep::app {
namespace {

std::string kind_text(const config::FieldDoc& field) {
  if (field.kind == "initializer" || field.kind == "activation") return field.kind;
  if (field.kind == "regularizer") return "regularizer";
  if (field.kind == "loss") return "loss: its name, or a map with its type";
  if (field.kind == "optimizer") return "optimizer: its name, or a map with its type";
  if (field.kind == "metric") return "metric or list of metrics";
  if (field.kind == "learning_rate") return "number or schedule";
  if (field.kind == "layer" || field.kind == "backward_layer") return "layer: a map with its type";
  if (field.kind == "layers") return "list of layers";
  if (field.kind == "nodes") return "map from names to layers";
  if (field.kind == "blocks") return "map from names to blocks";
  return field.type == "value" ? "number or list of numbers" : "";
}

}  // namespace

std::string type_text(const config::FieldDoc& field) {
  std::string text = kind_text(field);
  if (text.empty()) {
    text = field.type;
    if (field.type.ends_with("one of")) text += fmt::format(" {}", fmt::join(field.words, ", "));
    const std::string range = config::allowed_range(field);
    if (!range.empty())
      text += (field.type.find("list") == std::string::npos ? ", " : ", each ") + range;
  }
  if (field.nullable) text += ", or null";
  return text;
}

std::string default_text(const config::FieldDoc& field) {
  if (field.required) return "required";
  if (!field.default_value) return field.type == "value" ? "absent" : "";
  return field.default_value->empty() ? "\"\"" : *field.default_value;
}

}  // namespace halfstep::app
