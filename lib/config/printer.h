#pragma once
// Converts a struct back into a Node, by its fields; reading the Node gives an equal struct.

#include <functional>

#include "config/fields.h"
#include "config/node.h"

namespace halfstep::config {

/// The value of a field.
Node value_node(FieldRef field);

/// The fields that `visit` declares; null nodes are omitted. With `defaults` (a printed fresh
/// struct), so are the values that equal theirs, unless they are required. Errors: InternalError
/// where `visit` leaves a section open.
Node print_fields(const std::function<void(Fields& f)>& visit, const Node* defaults);

/// Whether two nodes hold the same values. Positions are ignored, and so are quotes around a text
/// that YAML resolves to the same value without them.
bool same(const Node& a, const Node& b);

/// The struct as a Node; with `defaults`, only the values that differ from them.
template <class S>
Node to_node(S value, const Node* defaults = nullptr) {
  return print_fields([&value](Fields& f) { value.fields(f); }, defaults);
}

}  // namespace halfstep::config
