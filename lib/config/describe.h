#pragma once
// The fields of a config struct as a list, with doc, type, range and default, for the generated
// reference.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// One field. A doc may end with the unit of its values in brackets, "The size of a batch.
/// [samples]"; the JSON Schema keeps it in the text, here the two are separate.
struct FieldDoc {
  std::string name;
  std::string path;  ///< below the described struct: "checkpoint_every.steps"; list items share one
  std::string doc;   ///< without the unit
  std::string unit;  ///< "" where there is none
  std::string type;  ///< "integer", "list of numbers", "one of", "section", "value", ...
  std::string kind;  ///< the field's name, where its values are the names of a registry
  bool nullable = false;
  bool required = false;
  std::optional<std::string> default_value;  ///< as YAML
  std::vector<std::string>
      words;  ///< the values of an enumerated field, or the names of a registry
  std::optional<double> min, max;  ///< of numbers and elements of lists, inclusive
  std::optional<double> above, below;
  std::string shorthand_key;  ///< of a section, see FieldOptions
};

/// The fields that `visit` declares, sections before their fields, in order.
std::vector<FieldDoc> describe_fields(const std::function<void(Fields& f)>& visit);

/// The same for a struct, with its present values as defaults.
template <class S>
std::vector<FieldDoc> describe_struct(S value) {
  return describe_fields([&value](Fields& f) { value.fields(f); });
}

/// "at least 1", "above 0 and at most 1", "" where every value is allowed.
std::string allowed_range(const FieldDoc& field);

}  // namespace halfstep::config
