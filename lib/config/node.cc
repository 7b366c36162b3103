#include "config/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/parse_number.h"
#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

/// Limit on the bytes of all paths in a tree, which grow with key length times depth times the
/// number of values.
constexpr std::size_t k_max_path_bytes = std::size_t{32} << 20U;

void set_paths_below(Node& node, std::string_view path, std::size_t& bytes_left) {
  // The path is stored twice: with the value and with the key.
  if (2 * path.size() > bytes_left) {
    constexpr std::size_t k_longest_shown = 60;
    throw UserError(ErrorKind::config,
                    {node.where.file, node.where.line, node.where.column, {}},
                    fmt::format("the paths of the config's values take more than {} MiB",
                                k_max_path_bytes >> 20U),
                    fmt::format("use shorter keys than '{}'", truncated(path, k_longest_shown)));
  }
  bytes_left -= 2 * path.size();
  node.where.path = path;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    set_paths_below(node.items[i], item_path(path, i), bytes_left);
  }
  for (Node::Entry& entry : node.entries) {
    entry.where.path = key_path(path, entry.key);
    set_paths_below(entry.value, entry.where.path, bytes_left);
  }
}

/// The item that a bracketed step means, or nullptr.
const Node* find_item(const Node& sequence, std::string_view step) {
  for (const Node& item : sequence.items) {
    const Node* name = item.find("name");
    if (name != nullptr && name->kind == Node::Kind::scalar && name->text == step) return &item;
  }
  const auto index = parse_number<std::size_t>(step);
  return index && *index < sequence.items.size() ? &sequence.items[*index] : nullptr;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const Entry* found = find_or_null(entries, key, &Entry::key);
  return found == nullptr ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

Node Node::scalar(std::string text, Where where) {
  Node node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  node.where = std::move(where);
  return node;
}

Node Node::map(std::vector<Entry> entries, Where where) {
  Node node;
  node.kind = Kind::map;
  node.entries = std::move(entries);
  node.where = std::move(where);
  return node;
}

std::optional<std::vector<PathStep>> parse_path(std::string_view text) {
  std::vector<PathStep> steps;
  bool key_may_follow = true;
  while (!text.empty()) {
    if (text[0] == '[') {
      const std::size_t end = text.find(']');
      if (end == std::string_view::npos || end == 1 || steps.empty()) return std::nullopt;
      steps.push_back({std::string(text.substr(1, end - 1)), true});
      text.remove_prefix(end + 1);
      key_may_follow = false;
      continue;
    }
    if (!key_may_follow) {
      if (text[0] != '.') return std::nullopt;
      text.remove_prefix(1);
    }
    const std::size_t end = std::min(text.find_first_of(".["), text.size());
    if (end == 0) return std::nullopt;
    steps.push_back({std::string(text.substr(0, end)), false});
    text.remove_prefix(end);
    key_may_follow = false;
  }
  if (steps.empty()) return std::nullopt;
  return steps;
}

std::string key_path(std::string_view parent, std::string_view key) {
  if (parent.empty()) return std::string(key);
  if (key.find_first_of(".[") != std::string_view::npos) return fmt::format("{}[{}]", parent, key);
  return fmt::format("{}.{}", parent, key);
}

std::string item_path(std::string_view parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

const Node* find_step(const Node& node, const PathStep& step) {
  if (node.kind == Node::Kind::map) return node.find(step.key);
  if (node.kind == Node::Kind::sequence && step.bracketed) return find_item(node, step.key);
  return nullptr;
}

const Node* find_path(const Node& root, std::string_view path) {
  const auto steps = parse_path(path);
  if (!steps) return nullptr;
  const Node* node = &root;
  for (const PathStep& step : *steps) {
    node = find_step(*node, step);
    if (node == nullptr) return nullptr;
  }
  return node;
}

std::vector<std::string> scalar_texts(const Node* node) {
  if (node == nullptr) return {};
  if (node->kind == Node::Kind::scalar) return {node->text};
  return mapped<std::string>(node->items, &Node::text);
}

void set_paths(Node& root) {
  std::size_t bytes_left = k_max_path_bytes;
  set_paths_below(root, {}, bytes_left);
}

}  // namespace halfstep::config
