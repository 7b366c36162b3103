#pragma once
// JSON Schema (draft-07) of a struct, from its fields.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// The types that other modules own. `kind` is the name of a field: of a Typed one, or of a node
/// (`layers`: a list of typed maps; `nodes`: a map of them; others: a number, or a typed map).
struct SchemaTypes {
  /// The name that kinds with the same types share in the schema, where they are described once:
  /// `initializer` of `kernel_initializer`. Unset: each kind is described by itself.
  std::function<std::string(std::string_view kind)> family;
  /// The known types of a kind; none: the schema accepts anything there.
  std::function<std::vector<std::string>(std::string_view kind)> names;
  /// Visits the fields of one type, with its usual values.
  std::function<void(std::string_view kind, std::string_view type, Fields& fields)> fields;
};

/// The schema of the fields that `visit` declares, as indented JSON text.
std::string schema_of_fields(const std::function<void(Fields& f)>& visit,
                             std::string_view title,
                             const SchemaTypes& types);

/// The schema of a whole struct, with its present values as defaults.
template <class S>
std::string schema_of(S value, std::string_view title, const SchemaTypes& types = {}) {
  return schema_of_fields([&value](Fields& f) { value.fields(f); }, title, types);
}

}  // namespace halfstep::config
