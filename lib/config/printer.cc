#include "config/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/scalar.h"
#include "config/yaml.h"

namespace halfstep::config {
namespace {

Node null() { return {}; }

Node value_node(bool value) { return Node::scalar(value ? "true" : "false"); }
Node value_node(std::int64_t value) { return Node::scalar(fmt::format("{}", value)); }
Node value_node(double value) { return Node::scalar(shortest(value)); }
Node value_node(DType value) { return Node::scalar(std::string(name(value))); }

Node value_node(const std::string& value) {
  Node node = Node::scalar(value);
  node.quoted = yaml_guesses(value);
  return node;
}

Node list_node() {
  Node node;
  node.kind = Node::Kind::sequence;
  return node;
}

template <class Range>
Node list_of(const Range& values) {
  Node node = list_node();
  for (const auto& value : values) node.items.push_back(value_node(value));
  return node;
}

template <class T>
Node optional_node(const std::optional<T>& value) {
  return value ? value_node(*value) : null();
}

Node map_node() {
  Node node;
  node.kind = Node::Kind::map;
  return node;
}

Node typed_node(const Typed& value) {
  Node type = value_node(value.type);
  if (value.node.entries.empty()) return type;
  Node node = map_node();
  node.entries.push_back({"type", {}, std::move(type)});
  node.entries.insert(node.entries.end(), value.node.entries.begin(), value.node.entries.end());
  return node;
}

}  // namespace

bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text) return false;
  // Quotes matter only where YAML would resolve the text to another type: a name is the same with
  // and without them.
  if (a.quoted != b.quoted && yaml_guesses(a.text)) return false;
  const auto same_entry = [](const Node::Entry& x, const Node::Entry& y) {
    return x.key == y.key && same(x.value, y.value);
  };
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(
             a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same_entry);
}

Printer::Printer(const Node* defaults) {
  Level root;
  root.node = map_node();
  root.defaults = defaults;
  levels_.push_back(std::move(root));
}

Node Printer::finish() {
  require(levels_.size() == 1, "{} sections were not ended", levels_.size() - 1);
  return std::move(levels_.back().node);
}

void Printer::add(std::string_view name, Node value, const About& about) {
  Level& level = levels_.back();
  if (level.defaults != nullptr && !about.required) {
    const Node* usual = level.defaults->find(name);
    if (usual != nullptr && same(*usual, value)) return;
    if (usual == nullptr && value.kind == Node::Kind::null) return;
  }
  level.node.entries.push_back({std::string(name), {}, std::move(value)});
}

void Printer::field(std::string_view name, bool& value, const About& about) {
  add(name, value_node(value), about);
}
void Printer::field(std::string_view name, std::int64_t& value, const About& about) {
  add(name, value_node(value), about);
}
void Printer::field(std::string_view name, double& value, const About& about) {
  add(name, value_node(value), about);
}
void Printer::field(std::string_view name, std::string& value, const About& about) {
  add(name, value_node(value), about);
}
void Printer::field(std::string_view name, DType& value, const About& about) {
  add(name, value_node(value), about);
}
void Printer::field(std::string_view name, Pair& value, const About& about) {
  add(name, value[0] == value[1] ? value_node(value[0]) : list_of(value), about);
}
void Printer::field(std::string_view name, std::vector<std::int64_t>& value, const About& about) {
  add(name, list_of(value), about);
}
void Printer::field(std::string_view name, std::vector<double>& value, const About& about) {
  add(name, list_of(value), about);
}
void Printer::field(std::string_view name, std::vector<std::string>& value, const About& about) {
  add(name, list_of(value), about);
}
void Printer::field(std::string_view name, std::vector<NamedExtents>& value, const About& about) {
  Node map = map_node();
  for (const NamedExtents& named : value) {
    map.entries.push_back({named.name, {}, list_of(named.extents)});
  }
  add(name, std::move(map), about);
}
void Printer::field(std::string_view name, std::optional<bool>& value, const About& about) {
  add(name, optional_node(value), about);
}
void Printer::field(std::string_view name, std::optional<std::int64_t>& v, const About& about) {
  add(name, optional_node(v), about);
}
void Printer::field(std::string_view name, std::optional<double>& value, const About& about) {
  add(name, optional_node(value), about);
}
void Printer::field(std::string_view name, std::optional<std::string>& value, const About& about) {
  add(name, optional_node(value), about);
}

void Printer::field(std::string_view name,
                    Typed& value,
                    std::span<const std::string_view>,
                    const About& about) {
  add(name, typed_node(value), about);
}

void Printer::field(std::string_view name,
                    std::optional<Typed>& value,
                    std::span<const std::string_view>,
                    const About& about) {
  add(name, value ? typed_node(*value) : null(), about);
}

void Printer::node(std::string_view name, Node& value, const About& about) {
  if (value.kind != Node::Kind::null) add(name, value, about);
}

void Printer::word(std::string_view name,
                   std::size_t& index,
                   std::span<const std::string_view> names,
                   const About& about) {
  add(name, value_node(std::string(names[index])), about);
}

void Printer::optional_word(std::string_view name,
                            std::optional<std::size_t>& index,
                            std::span<const std::string_view> names,
                            const About& about) {
  add(name, index ? value_node(std::string(names[*index])) : null(), about);
}

void Printer::open(std::string_view name, Node::Kind kind, const About& about) {
  Level level;
  level.node.kind = kind;
  level.key = name;
  level.about = about;
  const Level& parent = levels_.back();
  if (parent.defaults != nullptr) level.defaults = parent.defaults->find(name);
  levels_.push_back(std::move(level));
}

bool Printer::begin_section(std::string_view name, const About& about) {
  open(name, Node::Kind::map, about);
  return true;
}

bool Printer::begin_optional_section(std::string_view name, bool present, const About& about) {
  open(name, Node::Kind::map, about);
  levels_.back().absent = !present;
  // A section that is absent by default is printed in full.
  const Node* defaults = levels_.back().defaults;
  if (defaults != nullptr && defaults->kind == Node::Kind::null) levels_.back().defaults = nullptr;
  return present;
}

void Printer::end_section() {
  Level level = std::move(levels_.back());
  levels_.pop_back();
  if (level.in_list) {
    levels_.back().node.items.push_back(std::move(level.node));
  } else if (level.absent) {
    add(level.key, null(), level.about);
  } else if (level.defaults == nullptr || !level.node.entries.empty()) {
    levels_.back().node.entries.push_back({std::move(level.key), {}, std::move(level.node)});
  }
}

std::size_t Printer::begin_list(std::string_view name, std::size_t size, const About& about) {
  open(name, Node::Kind::sequence, about);
  return size;
}

void Printer::begin_element(std::size_t) {
  Level level;
  level.node = map_node();
  level.in_list = true;
  levels_.push_back(std::move(level));
}

void Printer::end_list() {
  Level level = std::move(levels_.back());
  levels_.pop_back();
  add(level.key, std::move(level.node), level.about);
}

}  // namespace halfstep::config
