#pragma once
// JSON writer, reader and schema of structs that describe their fields.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fields.h"

namespace halfstep {

using Json = nlohmann::ordered_json;

/// A deviation of a document from its schema: `path` as in "history.loss[2]", "" for the root.
struct Violation {
  std::string path;
  std::string message;

  bool operator==(const Violation&) const = default;
};

/// Limits on a document from elsewhere that JSON's grammar does not set.
struct JsonLimits {
  std::size_t depth;  ///< of objects and arrays in each other
  /// A value takes about 100 bytes of memory and as few as two of the text.
  std::size_t values = std::numeric_limits<std::size_t>::max();
  /// Of keys: Json compares each key of an object with all before it.
  std::size_t comparisons = std::numeric_limits<std::size_t>::max();
};

/// Checks a document without building it. Returns a message about the first duplicate key in an
/// object or the first exceeded limit, such as "has the key 'a.b' twice"; "" if there is none
/// before the first syntax error. A separate pass, because the parser's callback takes time
/// quadratic in the length of an array.
std::string find_limit_violation(std::string_view text, const JsonLimits& limits);

/// The options in which the JSON formats of reports and run states differ.
struct JsonFormat {
  /// Numbers that are not finite are "nan", "inf" and "-inf"; otherwise null.
  bool nonfinite_strings = false;
  /// Members use FieldOptions::old_name if it is set.
  bool old_names = false;
  /// Unknown members are skipped; otherwise they are violations.
  bool skip_unknown = false;
  /// The largest 64-bit integer; integers are counts and at least 0.
  std::int64_t max_integer = std::numeric_limits<std::int64_t>::max();
};

/// A report has NaN and infinity as null; a NonfiniteMap has the path and the kind of each.
enum class Nonfinite { nan, inf, negative_inf };
std::span<const std::string_view> names_of(Nonfinite);
using NonfiniteMap = std::vector<std::pair<std::string, Nonfinite>>;  ///< in document order

/// A value as text, truncated for a message.
std::string repr(const Json& value);

/// The text with bytes that are not UTF-8 replaced.
std::string utf8(std::string_view text);

Json write_json(FieldRef field, const JsonFormat& format = {});
/// Reads `json` into the field; continues after a violation, up to a thousand of them.
void read_json(const Json& json,
               FieldRef field,
               std::vector<Violation>& found,
               const JsonFormat& format = {});
/// JSON Schema (draft-07) of a field.
Json json_schema(FieldRef field, const FieldOptions& options = {});
/// Replaces bytes that are not UTF-8, and resets optional numbers that are not finite. Returns the
/// paths of all numbers that are not finite.
NonfiniteMap sanitize(FieldRef field);
/// The same for JSON: every number that is not finite becomes null. `path` is the path of `json`.
void sanitize(Json& json, const std::string& path, NonfiniteMap& found);
/// Calls `use(name, field)` for every field of a struct, including unnamed members.
void for_each_field(FieldRef structure,
                    void (*use)(void*, const std::string&, FieldRef),
                    void* context);

/// The struct is not changed: the writer only reads through the references.
template <class S>
FieldRef field_of(const S& value) {
  return field_ref(const_cast<S&>(value));
}

template <class S>
requires requires(S& s, Fields& f) { s.fields(f); }
Json to_json(const S& value, const JsonFormat& format = {}) {
  return write_json(field_of(value), format);
}

template <class S, class Use>
void for_each_field(const S& value, Use use) {
  for_each_field(
      field_of(value),
      [](void* context, const std::string& name, FieldRef field) {
        (*static_cast<Use*>(context))(name, field);
      },
      &use);
}

}  // namespace halfstep
