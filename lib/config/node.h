#pragma once
// The config as a tree of text with positions, and the paths of its values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace halfstep::config {

/// A YAML value with its position. Scalars stay text: their type comes from the field that reads
/// them, not from YAML's type resolution.
struct Node {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  std::string text;            ///< of a scalar
  bool quoted = false;         ///< written in quotes, so `null` is a string
  std::vector<Node> items;     ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in file order, keys unique
  Where where;                 ///< file:line:column and config path of the value

  /// The value of a key of a map, or nullptr.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);

  static Node scalar(std::string text, Where where = {});
  static Node map(std::vector<Entry> entries, Where where = {});
};

struct Node::Entry {
  std::string key;
  Where where;  ///< of the key
  Node value;
};

/// A step of a config path: `training.epochs`, `model.layers[2].units`,
/// `model.layers[logits].dtype`. A list item is named by its index or by its key `name`; brackets
/// on a map hold a literal key, for keys that contain dots.
struct PathStep {
  std::string key;         ///< a map's key, or an item's index or name
  bool bracketed = false;  ///< written in [ ]
};

/// Nothing when the text is not a path.
std::optional<std::vector<PathStep>> parse_path(std::string_view text);

/// The path of a key of the map at `parent`.
std::string key_path(std::string_view parent, std::string_view key);
std::string item_path(std::string_view parent, std::size_t index);

/// One step down from a node, or nullptr.
const Node* find_step(const Node& node, const PathStep& step);

/// The node at a path, or nullptr.
const Node* find_path(const Node& root, std::string_view path);

/// The text of a scalar, or of each item of a sequence; empty for other nodes.
std::vector<std::string> scalar_texts(const Node* node);

/// Writes the path of every node of a whole config. Errors: UserError(config) when the paths take
/// more than 32 MiB together.
void set_paths(Node& root);

}  // namespace halfstep::config
