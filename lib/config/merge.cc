#include "config/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "config/scalar.h"
#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

constexpr std::string_view k_path_examples = "training.epochs and model.layers[0].units are";

/// Two mutually exclusive forms in the map at `path`.
struct ExclusiveKeys {
  std::string_view path;
  std::array<std::string_view, 4> one;
  std::array<std::string_view, 4> other;
  /// Keys that go with the other form, and do not choose it by themselves.
  std::array<std::string_view, 9> with_other;
};

constexpr std::array k_exclusive_keys{
    ExclusiveKeys{"data",
                  {"name"},
                  {"format", "path", "sha256", "table"},
                  {"layout",
                   "text",
                   "test_split",
                   "split_seed",
                   "image_size",
                   "channels",
                   "resize",
                   "on_bad_sample",
                   "sample_weight"}},
    ExclusiveKeys{"model", {"input", "layers"}, {"inputs", "blocks", "nodes", "outputs"}, {}},
};

bool has_any(const Node& map, std::span<const std::string_view> keys) {
  return std::ranges::any_of(keys, [&map](std::string_view key) {
    const Node* value = key.empty() ? nullptr : map.find(key);
    return value != nullptr && value->kind != Node::Kind::null;
  });
}

void erase(Node& map, std::span<const std::string_view> keys) {
  std::erase_if(map.entries,
                [keys](const Node::Entry& entry) { return contains(keys, entry.key); });
}

/// Removes from `base` the keys that exclude those of the later `over`.
void drop_excluded(Node& base, const Node& over, std::string_view path) {
  for (const ExclusiveKeys& keys : k_exclusive_keys) {
    if (keys.path != path) continue;
    const bool one = has_any(over, keys.one);
    const bool other = has_any(over, keys.other);
    if (one && !other) {
      erase(base, keys.other);
      erase(base, keys.with_other);
    }
    if (other && !one) erase(base, keys.one);
  }
}

/// Whether `key` of the map at `path` was removed because the map uses the other form.
bool is_superseded(const Node& map, std::string_view key, std::string_view path) {
  return std::ranges::any_of(k_exclusive_keys, [&](const ExclusiveKeys& keys) {
    return keys.path == path && ((contains(keys.one, key) && has_any(map, keys.other)) ||
                                 ((contains(keys.other, key) || contains(keys.with_other, key)) &&
                                  has_any(map, keys.one)));
  });
}

bool other_type(const Node& base, const Node& over) {
  const Node* before = base.find("type");
  const Node* after = over.find("type");
  return before != nullptr && after != nullptr && before->text != after->text;
}

/// Whether a shorthand merged into the map at `path` replaces only the keys that it gives: `device:
/// cpu` leaves `device.threads` alone, while `optimizer: sgd` replaces the whole optimizer.
bool word_joins_map(std::string_view path) { return path == "device"; }

void overlay_at(Node& base, Node over, const std::string& path) {
  if (over.kind == Node::Kind::map) expand_shorthand(base, path);
  if (base.kind == Node::Kind::map && word_joins_map(path)) expand_shorthand(over, path);
  if (base.kind != Node::Kind::map || over.kind != Node::Kind::map || other_type(base, over)) {
    base = std::move(over);
    return;
  }
  drop_excluded(base, over, path);
  for (Node::Entry& entry : over.entries) {
    if (Node* value = base.find(entry.key)) {
      overlay_at(*value, std::move(entry.value), key_path(path, entry.key));
    } else {
      base.entries.push_back(std::move(entry));
    }
  }
}

/// Descends the tree for one Override; reports where the path ends early.
class Walk {
 public:
  Walk(Node& root, const Override& change, Diagnostics& diagnostics)
      : node_(&root), change_(change), diagnostics_(diagnostics) {}

  /// Turns the current node into a map if it is null or a shorthand. False: `next` is an item of a
  /// list that is not there, and the error is reported.
  bool open(const PathStep& next) {
    if (expand_shorthand(*node_, path_)) return true;
    if (node_->kind != Node::Kind::null || change_.kind == Override::Kind::unset) return true;
    if (next.bracketed && next.key.find_first_not_of("0123456789") == std::string::npos) {
      node_->kind = Node::Kind::sequence;  // so that its reader has nothing to add
      return error(fmt::format("{} is not set, so it has no item [{}]", path_, next.key),
                   fmt::format("{}=[...] sets the whole list", path_));
    }
    node_->kind = Node::Kind::map;
    node_->where.file = change_.origin;
    return true;
  }

  /// Descends one level, creating a missing key of a map. False: the path ends here, with an error
  /// reported unless nothing remains to be done.
  bool step(const PathStep& step) {
    if (!open(step)) return false;
    const Node* found = find_step(*node_, step);
    if (found == nullptr && node_->kind == Node::Kind::map) {
      if (change_.kind == Override::Kind::unset) return nothing_to_unset(step.key);
      node_->entries.push_back({step.key, where(), Node()});
      node_->entries.back().value.where = where();
      found = &node_->entries.back().value;
    }
    if (found == nullptr) return no_step(step);
    path_ = step.bracketed && node_->kind == Node::Kind::sequence ? path_ + "[" + step.key + "]"
                                                                  : key_path(path_, step.key);
    node_ = const_cast<Node*>(found);
    return true;
  }

  Node& node() { return *node_; }
  const std::string& path() const { return path_; }

  bool error(std::string message, std::string hint = {}) {
    diagnostics_.error({change_.origin, 0, 0, {}}, std::move(message), std::move(hint));
    return false;
  }

 private:
  Where where() const { return {change_.origin, 0, 0, {}}; }

  bool nothing_to_unset(const std::string& key) {
    if (is_superseded(*node_, key, path_)) return false;
    const auto keys = mapped<std::string>(node_->entries, &Node::Entry::key);
    return error("there is nothing to unset", did_you_mean(key, keys));
  }

  bool no_step(const PathStep& step) {
    if (node_->kind != Node::Kind::sequence) {
      return error(fmt::format("{} is not a map, so it has no '{}'", path_, step.key));
    }
    const std::size_t count = node_->items.size();
    if (!step.bracketed) {
      return error(fmt::format("{} is a list", path_),
                   fmt::format("{}[{}] names an item", path_, step.key));
    }
    std::vector<std::string> names;
    for (const Node& item : node_->items) {
      if (const Node* name = item.find("name")) names.push_back(name->text);
    }
    return error(fmt::format("{} has {} items, none is [{}]", path_, count, step.key),
                 did_you_mean(step.key, names));
  }

  Node* node_;
  std::string path_;
  const Override& change_;
  Diagnostics& diagnostics_;
};

void remove_step(Node& parent, const Node& child) {
  std::erase_if(parent.items, [&child](const Node& item) { return &item == &child; });
  std::erase_if(parent.entries, [&child](const Node::Entry& e) { return &e.value == &child; });
}

std::optional<Node> new_value(const Override& change, Diagnostics& diagnostics) {
  if (change.kind == Override::Kind::set_text) {
    Node node = Node::scalar(change.value, {change.origin, 0, 0, {}});
    node.quoted = true;
    if (is_utf8(node.text)) return node;
    diagnostics.error(node.where, "the value is not UTF-8 text, so no config can hold it");
    return std::nullopt;
  }
  try {
    return load_value(change.value, change.origin, diagnostics);
  } catch (const UserError& error) {
    for (const Problem& problem : error.problems()) {
      diagnostics.error(
          {change.origin, 0, 0, {}}, problem.message, "--set-str takes the value as it stands");
    }
    return std::nullopt;
  }
}

}  // namespace

void overlay(Node& base, Node over) {
  overlay_at(base, std::move(over), "");
  set_paths(base);
}

Override Override::parse(Kind kind, std::string_view flag, std::string_view argument) {
  Override result;
  result.kind = kind;
  // Every value that the setting creates holds its origin.
  constexpr std::size_t k_longest_origin = 200;
  result.origin = fmt::format("{} {}", flag, truncated(argument, k_longest_origin));
  const std::size_t split = kind == Kind::unset ? argument.size() : argument.find('=');
  if (split == std::string_view::npos) {
    throw UserError(
        ErrorKind::config, {result.origin, 0, 0, {}}, fmt::format("{} needs path=value", flag));
  }
  result.path = argument.substr(0, split);
  if (kind != Kind::unset) result.value = argument.substr(split + 1);
  if (!parse_path(result.path)) {
    throw UserError(ErrorKind::config,
                    {result.origin, 0, 0, {}},
                    fmt::format("'{}' is not a config path", result.path),
                    std::string(k_path_examples));
  }
  return result;
}

void apply(Node& config, const Override& change, Diagnostics& diagnostics) {
  const auto steps = parse_path(change.path);
  if (!steps) {
    diagnostics.error({change.origin, 0, 0, {}},
                      fmt::format("'{}' is not a config path", change.path),
                      std::string(k_path_examples));
    return;
  }
  std::optional<Node> value;
  if (change.kind != Override::Kind::unset) {
    value = new_value(change, diagnostics);
    if (!value) return;
  }
  Walk walk(config, change, diagnostics);
  for (std::size_t i = 0; i + 1 < steps->size(); ++i) {
    if (!walk.step((*steps)[i])) return;
  }
  Node* parent = &walk.node();
  const std::string parent_path = walk.path();
  if (!walk.open(steps->back())) return;
  if (value) {
    drop_excluded(*parent, Node::map({{steps->back().key, {}, *value}}), parent_path);
  }
  if (!walk.step(steps->back())) return;
  if (!value) {
    remove_step(*parent, walk.node());
  } else if (word_joins_map(walk.path())) {
    overlay_at(walk.node(), std::move(*value), walk.path());
  } else {
    walk.node() = std::move(*value);
  }
  set_paths(config);
}

Node assemble(std::span<const std::string> files,
              std::span<const Override> overrides,
              Diagnostics& diagnostics,
              const LoadOptions& options) {
  Node config = Node::map({});
  bool first = true;
  for (const std::string& file : files) {
    Node loaded = load_file(file, diagnostics, options);
    if (std::exchange(first, false))
      config = std::move(loaded);
    else
      overlay(config, std::move(loaded));
  }
  for (const Override& change : overrides) apply(config, change, diagnostics);
  return config;
}

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

bool expand_shorthand(Node& node, std::string_view path) {
  if (node.kind != Node::Kind::scalar) return false;
  for (const Shorthand& shorthand : k_shorthands) {
    if (shorthand.path != path) continue;
    Node map = Node::map({}, node.where);
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

}  // namespace halfstep::config
