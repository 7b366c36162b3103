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

/// Something in which a document differs from its description: `path` as in "history.loss[2]", ""
/// for the whole.
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

/// Reads a document without building it. Returns the first thing that the parser accepts and that
/// is refused here, a key twice in one object or a limit exceeded, as "has the key 'a.b' twice"; ""
/// if there is none before the first error of syntax. A pass of its own, because the parser's
/// callback takes time quadratic in the length of an array.
std::string find_excess(std::string_view text, const JsonLimits& limits);

/// Differences between the kinds of JSON files written from descriptions.
struct JsonFormat {
  /// Numbers that are not finite are "nan", "inf" and "-inf"; otherwise null.
  bool nonfinite_words = false;
  /// Members use FieldOptions::old_name if it is set.
  bool old_names = false;
  /// Unknown members are skipped; otherwise they are violations.
  bool skip_unknown = false;
  /// The largest 64-bit integer; integers are counts and at least 0.
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

/// A report has nan and infinity as null, with the path and the kind here.
enum class Nonfinite { nan, inf, negative_inf };
std::span<const std::string_view> names_of(Nonfinite);
using NonfiniteMap = std::vector<std::pair<std::string, Nonfinite>>;  ///< in document order

/// A value, shortened for a message.
std::string shown(const Json& value);

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
/// Replaces bytes that are not UTF-8, and removes optional numbers that are not finite; returns the
/// paths of all numbers that are not finite.
NonfiniteMap tidy(FieldRef field);
/// The same for JSON: every number that is not finite becomes null. `path` is the path of `json`.
void tidy(Json& json, const std::string& path, NonfiniteMap& found);
/// Calls `use(name, field)` for every field of a struct, including unnamed members.
void each_field(FieldRef structure,
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
void each_field(const S& value, Use use) {
  each_field(
      field_of(value),
      [](void* context, const std::string& name, FieldRef field) {
        (*static_cast<Use*>(context))(name, field);
      },
      &use);
}

}  // namespace halfstep
