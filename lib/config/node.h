#pragma once
// The config as a tree of text with positions.

#include <string>
#include <string_view>
#include <utility>
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
};

struct Node::Entry {
  std::string key;
  Where where;  ///< of the key
  Node value;
};

}  // namespace halfstep::config
