#pragma once
// One description of a config struct, used four ways: reading YAML into it with checks, printing
// it, emitting JSON Schema, and listing its keys. A configurable struct S has a member
//
//     void fields(Fields& f) { f.field("units", units, {.doc = "output width", .min = 1}); ... }
//
// and its default values are the values of a fresh S. A field without a default is `required`.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field_options.h"
#include "config/node.h"

namespace halfstep::config {

class Fields {
 public:
  virtual ~Fields() = default;
  virtual void visit(std::string_view name, FieldRef field, const FieldOptions& options) = 0;

  template <class T>
  void field(std::string_view name, T& value, const FieldOptions& options) {
    visit(name, &value, options);
  }

  /// One of `types` with its own fields; see Typed. Without `types` any name will do: its owner
  /// checks it.
  void field(std::string_view name,
             Typed& value,
             std::span<const std::string_view> types,
             const FieldOptions& options);
  void field(std::string_view name,
             std::optional<Typed>& value,
             std::span<const std::string_view> types,
             const FieldOptions& options);

  /// One name out of an enum's name table.
  template <class E, std::size_t N>
  void choice(std::string_view name,
              E& value,
              const std::array<Named<E>, N>& table,
              const FieldOptions& options) {
    std::optional<E> given(value);
    choose(name, given, table, false, options);
    value = *given;
  }

  /// An optional name out of an enum's name table.
  template <class E, std::size_t N>
  void choice(std::string_view name,
              std::optional<E>& value,
              const std::array<Named<E>, N>& table,
              const FieldOptions& options) {
    choose(name, value, table, true, options);
  }

  /// One of the names of a table that another module owns.
  void one_of(std::string_view name,
              std::string& value,
              std::span<const std::string_view> words,
              const FieldOptions& options);
  void one_of(std::string_view name,
              std::optional<std::string>& value,
              std::span<const std::string_view> words,
              const FieldOptions& options);

  /// A nested struct with fields of its own, written as a map.
  template <class S>
  void section(std::string_view name, S& value, const FieldOptions& options) {
    if (begin_section(name, std::nullopt, options)) value.fields(*this);
    end_section();
  }

  /// A nested struct that may be absent or `null`.
  template <class S>
  void section(std::string_view name, std::optional<S>& value, const FieldOptions& options) {
    if (begin_section(name, value.has_value(), options)) {
      if (!value) value.emplace();
      value->fields(*this);
    }
    end_section();
  }

  /// A list of structs, each written as a map.
  template <class S>
  void sections(std::string_view name, std::vector<S>& values, const FieldOptions& options) {
    const std::size_t count = begin_list(name, values.size(), options);
    values.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      begin_element(i);
      values[i].fields(*this);
      end_section();
    }
    end_list();
  }

 protected:
  /// False when the section is not to be visited (it is absent and has nothing required).
  /// `present`: whether a struct that may be absent has a value now.
  virtual bool begin_section(std::string_view name,
                             std::optional<bool> present,
                             const FieldOptions& options) = 0;
  virtual void end_section() = 0;
  /// Returns how many elements to visit; a schema writer returns 1.
  virtual std::size_t begin_list(std::string_view name,
                                 std::size_t size,
                                 const FieldOptions& options) = 0;
  virtual void begin_element(std::size_t index) = 0;
  virtual void end_list() = 0;

 private:
  /// An index that is not `nullable` and has no value becomes 0.
  void choice(std::string_view name,
              std::optional<std::size_t>& index,
              std::span<const std::string_view> names,
              bool nullable,
              const FieldOptions& options);

  template <class E, std::size_t N>
  void choose(std::string_view name,
              std::optional<E>& value,
              const std::array<Named<E>, N>& table,
              bool nullable,
              const FieldOptions& options) {
    std::array<std::string_view, N> names;
    std::optional<std::size_t> index;
    for (std::size_t i = 0; i < N; ++i) {
      names[i] = table[i].name;
      if (value == table[i].value) index = i;
    }
    choice(name, index, names, nullable, options);
    value = index ? std::optional<E>(table[*index].value) : std::nullopt;
  }

  void one_of(std::string_view name,
              std::optional<std::string>& value,
              std::span<const std::string_view> words,
              bool nullable,
              const FieldOptions& options);
};

/// Reads a map node into `value` by its fields. Unknown keys, missing required keys, wrong types
/// and values out of range go to `diagnostics` with position, path, expected value and the nearest
/// known key; reading continues, so that all problems are reported at once. `ignored` keys are
/// skipped (another reader handles them, such as a layer's `type` and `from`).
template <class S>
void read(const Node& node,
          S& value,
          Diagnostics& diagnostics,
          std::span<const std::string_view> ignored = {});

}  // namespace halfstep::config

#include "config/reader.h"
