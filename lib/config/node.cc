#include "config/node.h"

#include <algorithm>

namespace halfstep::config {

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(
      entries.begin(), entries.end(), [key](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
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

}  // namespace halfstep::config
