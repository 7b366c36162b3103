#include "config/shorthand.h"

#include <array>

#include "config/scalar.h"

namespace halfstep::config {
namespace {

struct Shorthand {
  std::string_view path;
  std::string_view key;  ///< whose value the shorthand gives
};

constexpr std::array k_shorthands{
    Shorthand{"device", "kind"},
    Shorthand{"loss", "type"},
    Shorthand{"optimizer", "type"},
    Shorthand{"precision.loss_scale", "mode"},
    Shorthand{"report.numerics", "mode"},
};

void add(Node& map, std::string_view key, Node value) {
  map.entries.push_back({std::string(key), value.where, std::move(value)});
}

}  // namespace

bool spell_out(Node& node, std::string_view path) {
  if (node.kind != Node::Kind::scalar) return false;
  for (const Shorthand& shorthand : k_shorthands) {
    if (shorthand.path != path) continue;
    Node map;
    map.kind = Node::Kind::map;
    map.where = node.where;
    const std::size_t colon = node.text.find(':');
    if (path == "precision.loss_scale" && to_number(node).value) {
      add(map, "mode", Node::scalar("fixed", node.where));
      add(map, "initial", std::move(node));
    } else if (path == "device" && colon != std::string::npos) {
      add(map, "kind", Node::scalar(node.text.substr(0, colon), node.where));
      add(map, "index", Node::scalar(node.text.substr(colon + 1), node.where));
    } else if (path == "device") {
      add(map, "kind", node);
      add(map, "index", Node::scalar("0", node.where));
    } else {
      add(map, shorthand.key, std::move(node));
    }
    node = std::move(map);
    return true;
  }
  return false;
}

bool word_joins_map(std::string_view path) { return path == "device"; }

}  // namespace halfstep::config
