#pragma once
// Options of a field declaration, and the field types that are not plain C++ types.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/node.h"
#include "core/dtype.h"
#include "core/ranges.h"

namespace halfstep::config {

/// The options of one field besides its type. Bounds are inclusive; `above` and `below` exclude
/// their value. For lists the bounds hold for each element.
struct FieldOptions {
  std::string_view doc = {};
  bool required = false;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::optional<double> above = std::nullopt;
  std::optional<double> below = std::nullopt;
  /// Sections: the key that a scalar in place of the map sets (`device: cpu`).
  std::string_view shorthand_key = {};
  bool shorthand_number = false;            ///< so does a number (`loss_scale: 1024`)
  std::string_view shorthand_pattern = {};  ///< and a string that matches (`device: cuda:1`)
  /// A Typed: a map without `type` maps names to such values and is stored unread.
  bool by_name = false;
};

/// An entry of an enum's name table: `constexpr std::array k_modes{Named{Mode::same, "same"},
/// ...}`.
template <class E>
struct Named {
  E value;
  std::string_view name;
};
template <class E, std::size_t N>
constexpr std::string_view name_of(E value, const std::array<Named<E>, N>& table) {
  std::size_t i = 0;
  while (table[i].value != value) ++i;
  return table[i].name;
}
template <class E, std::size_t N>
constexpr std::optional<E> value_named(std::string_view name,
                                       const std::array<Named<E>, N>& table) {
  const Named<E>* found = find_or_null(table, name, &Named<E>::name);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

/// A value that is either a bare name or a map with `type` and the fields of that type: `optimizer:
/// sgd` or `optimizer: {type: sgd, momentum: 0.9}`. The fields are not read here: the module that
/// owns the type reads them from `node` (a map without the key `type`).
struct Typed {
  std::string type;  ///< empty for a map from names
  Node node;
  Where where;  ///< of the name

  bool operator==(const Typed& other) const { return type == other.type; }
};

/// One of a set of names: its index, or a Typed of that name. Has a value unless `nullable`.
template <class T>
struct NamedRef {
  std::optional<T>& value;
  std::span<const std::string_view> names;  ///< of a Typed: empty where its owner checks the name
  bool nullable;
};
using ChoiceRef = NamedRef<std::size_t>;
using TypedRef = NamedRef<Typed>;

/// An entry of a map from names to values.
template <class T>
struct NamedValue {
  std::string name;
  T value{};
  Where where{};  ///< of the name

  bool operator==(const NamedValue& other) const {
    return name == other.name && value == other.value;
  }
};
using NamedNumber = NamedValue<double>;                      ///< `class_weight: {0: 1.0, 1: 5.0}`
using NamedExtents = NamedValue<std::vector<std::int64_t>>;  ///< `inputs: {image: [28, 28, 1]}`
/// `class_names: {kind: [cat, dog]}`; the strings of a plain list have the name "".
using NamedStrings = NamedValue<std::vector<std::string>>;

/// Extents along two or three axes; one number stands for all: `3` means [3, 3].
using Pair = std::array<std::int64_t, 2>;
using Triple = std::array<std::int64_t, 3>;

/// A number may be written as a fraction, `1/255`, a single string as a list of one. Optional
/// fields: `null` or absence means no value. NamedExtents and NamedNumber: a map, whose order is
/// kept. NamedStrings: such a map, or one list. A Node: any YAML value, stored unread for the
/// module that owns it.
using FieldRef = std::variant<bool*,
                              std::int64_t*,
                              double*,
                              std::string*,
                              DType*,
                              Pair*,
                              Triple*,
                              std::vector<std::int64_t>*,
                              std::vector<double>*,
                              std::vector<std::string>*,
                              std::vector<NamedExtents>*,
                              std::vector<NamedNumber>*,
                              std::vector<NamedStrings>*,
                              std::optional<bool>*,
                              std::optional<std::int64_t>*,
                              std::optional<double>*,
                              std::optional<std::string>*,
                              const ChoiceRef*,
                              const TypedRef*,
                              Node*>;

}  // namespace halfstep::config
