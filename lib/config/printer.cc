#include "config/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "config/scalar.h"
#include "config/yaml.h"

namespace halfstep::config {
namespace {

Node value_node(bool value) { return Node::scalar(value ? "true" : "false"); }
Node value_node(std::int64_t value) { return Node::scalar(fmt::format("{}", value)); }
Node value_node(double value) { return Node::scalar(shortest(value)); }
Node value_node(DType value) { return Node::scalar(std::string(name(value))); }

Node value_node(const std::string& value) {
  Node node = Node::scalar(value);
  node.quoted = resolves_to_non_string(value);
  return node;
}

Node node_of(Node::Kind kind) {
  Node node;
  node.kind = kind;
  return node;
}

template <class T>
Node value_node(const std::vector<T>& values) {
  Node node = node_of(Node::Kind::sequence);
  for (const auto& value : values) node.items.push_back(value_node(value));
  return node;
}

template <std::size_t n>
Node value_node(const std::array<std::int64_t, n>& value) {
  const std::vector<std::int64_t> extents(value.begin(), value.end());
  const bool same = std::ranges::all_of(value, [&](auto v) { return v == value[0]; });
  return same ? value_node(value[0]) : value_node(extents);
}

template <class T>
Node value_node(const std::vector<NamedValue<T>>& value) {
  if constexpr (std::is_same_v<NamedValue<T>, NamedStrings>) {
    if (value.empty()) return node_of(Node::Kind::sequence);
    if (value[0].name.empty()) return value_node(value[0].value);
  }
  Node node = node_of(Node::Kind::map);
  for (const auto& named : value) {
    node.entries.push_back({named.name, {}, value_node(named.value)});
  }
  return node;
}

template <class T>
Node value_node(const std::optional<T>& value) {
  return value ? value_node(*value) : Node();
}

Node value_node(const ChoiceRef& word) {
  return word.value ? value_node(std::string(word.names[*word.value])) : Node();
}

Node value_node(const TypedRef& typed) {
  if (!typed.value) return {};
  if (typed.value->type.empty() && !typed.value->node.entries.empty()) return typed.value->node;
  Node type = value_node(typed.value->type);
  const std::vector<Node::Entry>& fields = typed.value->node.entries;
  if (fields.empty()) return type;
  Node node = node_of(Node::Kind::map);
  node.entries.push_back({"type", {}, std::move(type)});
  node.entries.insert(node.entries.end(), fields.begin(), fields.end());
  return node;
}

Node value_node(const Node& value) { return value; }

class Printer final : public Fields {
 public:
  explicit Printer(const Node* defaults) {
    levels_.push_back({.node = node_of(Node::Kind::map), .defaults = defaults});
  }

  Node finish() {
    require(levels_.size() == 1, "{} sections were not ended", levels_.size() - 1);
    return std::move(levels_.back().node);
  }

  void visit(std::string_view name, FieldRef field, const FieldOptions& options) override {
    Node value = config::value_node(field);
    const bool unset = std::holds_alternative<Node*>(field) && value.kind == Node::Kind::null;
    if (!unset) add(name, std::move(value), options);
  }

 protected:
  bool begin_section(std::string_view name,
                     std::optional<bool> present,
                     const FieldOptions& options) override {
    open(name, Node::Kind::map, options);
    Level& level = levels_.back();
    level.absent = present == false;
    // A section that is absent by default is printed in full.
    const bool null = level.defaults != nullptr && level.defaults->kind == Node::Kind::null;
    if (present && null) level.defaults = nullptr;
    return !level.absent;
  }

  void end_section() override {
    Level level = close();
    if (level.in_list) {
      levels_.back().node.items.push_back(std::move(level.node));
    } else if (level.absent) {
      add(level.key, {}, level.options);
    } else if (level.defaults == nullptr || !level.node.entries.empty()) {
      levels_.back().node.entries.push_back({std::move(level.key), {}, std::move(level.node)});
    }
  }

  std::size_t begin_list(std::string_view name,
                         std::size_t size,
                         const FieldOptions& options) override {
    open(name, Node::Kind::sequence, options);
    return size;
  }

  void begin_element(std::size_t) override {
    levels_.push_back({.node = node_of(Node::Kind::map), .in_list = true});
  }

  void end_list() override {
    Level level = close();
    add(level.key, std::move(level.node), level.options);
  }

 private:
  struct Level {
    Node node{};
    const Node* defaults = nullptr;
    std::string key{};  ///< in the parent
    FieldOptions options{};
    bool in_list = false;
    bool absent = false;
  };

  void add(std::string_view name, Node value, const FieldOptions& options) {
    Level& level = levels_.back();
    if (level.defaults != nullptr && !options.required) {
      const Node* default_value = level.defaults->find(name);
      if (default_value != nullptr && same(*default_value, value)) return;
      if (default_value == nullptr && value.kind == Node::Kind::null) return;
    }
    level.node.entries.push_back({std::string(name), {}, std::move(value)});
  }

  void open(std::string_view name, Node::Kind kind, const FieldOptions& options) {
    const Node* outer = levels_.back().defaults;
    levels_.push_back({.node = node_of(kind),
                       .defaults = outer != nullptr ? outer->find(name) : nullptr,
                       .key = std::string(name),
                       .options = options});
  }

  Level close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return level;
  }

  std::vector<Level> levels_;
};

}  // namespace

Node value_node(FieldRef field) {
  return std::visit([](const auto* value) { return value_node(*value); }, field);
}

bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text) return false;
  if (a.quoted != b.quoted && resolves_to_non_string(a.text)) return false;
  const auto same_entry = [](const Node::Entry& x, const Node::Entry& y) {
    return x.key == y.key && same(x.value, y.value);
  };
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(
             a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same_entry);
}

Node print_fields(const std::function<void(Fields& f)>& visit, const Node* defaults) {
  Printer printer(defaults);
  visit(printer);
  return printer.finish();
}

}  // namespace halfstep::config
