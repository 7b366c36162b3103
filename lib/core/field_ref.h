#pragma once
// Typed references to the fields of a struct, as passed to visitors (core/fields.h).

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace halfstep {

class Fields;

/// Properties of a field besides its type. Bounds and `each` of a list or map are those of its
/// elements.
struct FieldOptions {
  std::string_view doc = {};
  std::string_view each = {};  ///< doc of an element
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::size_t max_elements = 0;    ///< of a list; 0: unlimited
  bool optional = false;           ///< may be missing in files of earlier versions
  bool omitted = false;            ///< an optional without a value is omitted, not null
  bool allow_scalar = false;       ///< a list of one element may be written as the element
  std::string_view key = {};       ///< a key that the map always has
  std::string_view key_doc = {};   ///< doc of that key's value
  std::string_view old_name = {};  ///< name in the state of a run (train/progress.h)
  bool utc = false;                ///< a string: empty, or a time in the format of utc_now()
};

/// A number that may be NaN or infinite, which JSON has as null. An optional double is also null
/// without a value.
struct MeasureRef {
  double* value;
};

/// A string that JSON has as null when it is empty.
struct TextOrNullRef {
  std::string* value;
};

/// A string with a fixed set of values.
struct OneOfRef {
  std::string* value;
  std::span<const std::string_view> words;
};

/// A member with the same value in every file.
struct ConstantRef {
  std::variant<std::int64_t, std::string_view> value;
};

/// JSON of any structure; an object where `object` is set.
struct JsonRef {
  nlohmann::ordered_json* value;
  bool object = false;
};

struct EnumRef {
  void* value;
  std::span<const std::string_view> names;
  std::size_t (*get)(const void* value);
  void (*set)(void* value, std::size_t index);
};

/// `as_list`: the values of the fields in order, without their names.
struct StructRef {
  void* value;
  void (*fields)(void* value, Fields& f);
  bool as_list = false;
};

struct OptionalOps;
struct ListOps;
struct MapOps;

struct OptionalRef {
  void* value;
  const OptionalOps* ops;
};
struct ListRef {
  void* value;
  const ListOps* ops;
};
struct MapRef {
  void* value;
  const MapOps* ops;
};

using FieldRef = std::variant<bool*,
                              int*,
                              std::int64_t*,
                              std::uint64_t*,
                              double*,
                              std::string*,
                              MeasureRef,
                              TextOrNullRef,
                              OneOfRef,
                              ConstantRef,
                              JsonRef,
                              EnumRef,
                              StructRef,
                              OptionalRef,
                              ListRef,
                              MapRef>;

/// `fresh` gives a default value of the element for visitors that need only its type; it is
/// overwritten by the next call in the same thread.
struct OptionalOps {
  bool (*has)(const void* value);
  FieldRef (*get)(void* value);
  FieldRef (*emplace)(void* value);
  void (*reset)(void* value);
  FieldRef (*fresh)();
};

struct ListOps {
  std::size_t (*size)(const void* value);
  FieldRef (*at)(void* value, std::size_t index);
  /// Of a list of any length: appends a default element; null where the length is fixed.
  FieldRef (*add)(void* value);
  void (*clear)(void* value);
  FieldRef (*fresh)();
  std::size_t fixed = 0;  ///< the length; 0 where any will do
};

struct MapOps {
  std::size_t (*size)(const void* value);
  /// Calls `use` for each entry in order.
  void (*each)(void* value,
               void (*use)(void* context, const std::string& key, FieldRef entry),
               void* context);
  FieldRef (*add)(void* value, const std::string& key);
  void (*clear)(void* value);
  FieldRef (*fresh)();
};

}  // namespace halfstep
