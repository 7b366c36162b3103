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

#include "config/about.h"
#include "config/node.h"
#include "core/dtype.h"

namespace halfstep::config {

class Fields {
 public:
  virtual ~Fields() = default;

  virtual void field(std::string_view name, bool& value, const About& about) = 0;
  virtual void field(std::string_view name, std::int64_t& value, const About& about) = 0;
  /// Numbers may be written as fractions: `1/255`.
  virtual void field(std::string_view name, double& value, const About& about) = 0;
  virtual void field(std::string_view name, std::string& value, const About& about) = 0;
  virtual void field(std::string_view name, DType& value, const About& about) = 0;
  virtual void field(std::string_view name, Pair& value, const About& about) = 0;
  virtual void field(std::string_view name, std::vector<std::int64_t>& value, const About& a) = 0;
  virtual void field(std::string_view name, std::vector<double>& value, const About& about) = 0;
  /// A single name is read as a list of one.
  virtual void field(std::string_view name, std::vector<std::string>& value, const About& a) = 0;
  /// A map from names to extents; its order is kept.
  virtual void field(std::string_view name, std::vector<NamedExtents>& value, const About& a) = 0;
  /// Optional fields: `null` or absence means no value.
  virtual void field(std::string_view name, std::optional<bool>& value, const About& a) = 0;
  virtual void field(std::string_view name, std::optional<std::int64_t>& v, const About& a) = 0;
  virtual void field(std::string_view name, std::optional<double>& value, const About& a) = 0;
  virtual void field(std::string_view name, std::optional<std::string>& value, const About& a) = 0;
  /// One of `types` with its own fields; see Typed. Without `types` any name will do: its owner
  /// checks it.
  virtual void field(std::string_view name,
                     Typed& value,
                     std::span<const std::string_view> types,
                     const About& about) = 0;
  virtual void field(std::string_view name,
                     std::optional<Typed>& value,
                     std::span<const std::string_view> types,
                     const About& about) = 0;
  /// Any YAML value, stored unread for the module that owns it.
  virtual void node(std::string_view name, Node& value, const About& about) = 0;

  /// One name out of an enum's name table.
  template <class E, std::size_t N>
  void choice(std::string_view name,
              E& value,
              const std::array<Named<E>, N>& table,
              const About& about) {
    std::array<std::string_view, N> names;
    std::size_t index = 0;
    for (std::size_t i = 0; i < N; ++i) {
      names[i] = table[i].name;
      if (table[i].value == value) index = i;
    }
    word(name, index, names, about);
    value = table[index].value;
  }

  /// Nothing, or one name out of an enum's name table.
  template <class E, std::size_t N>
  void choice(std::string_view name,
              std::optional<E>& value,
              const std::array<Named<E>, N>& table,
              const About& about) {
    std::array<std::string_view, N> names;
    std::optional<std::size_t> index;
    for (std::size_t i = 0; i < N; ++i) {
      names[i] = table[i].name;
      if (value && table[i].value == *value) index = i;
    }
    optional_word(name, index, names, about);
    value = index ? std::optional<E>(table[*index].value) : std::nullopt;
  }

  /// One of the names of a table that another module owns.
  void one_of(std::string_view name,
              std::string& value,
              std::span<const std::string_view> words,
              const About& about);
  void one_of(std::string_view name,
              std::optional<std::string>& value,
              std::span<const std::string_view> words,
              const About& about);

  /// A nested struct with fields of its own, written as a map.
  template <class S>
  void section(std::string_view name, S& value, const About& about) {
    if (begin_section(name, about)) value.fields(*this);
    end_section();
  }

  /// A nested struct that may be absent or `null`.
  template <class S>
  void section(std::string_view name, std::optional<S>& value, const About& about) {
    if (begin_optional_section(name, value.has_value(), about)) {
      if (!value) value.emplace();
      value->fields(*this);
    }
    end_section();
  }

  /// A list of structs, each written as a map.
  template <class S>
  void sections(std::string_view name, std::vector<S>& values, const About& about) {
    const std::size_t count = begin_list(name, values.size(), about);
    values.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      begin_element(i);
      values[i].fields(*this);
      end_section();
    }
    end_list();
  }

 protected:
  virtual void word(std::string_view name,
                    std::size_t& index,
                    std::span<const std::string_view> names,
                    const About& about) = 0;
  virtual void optional_word(std::string_view name,
                             std::optional<std::size_t>& index,
                             std::span<const std::string_view> names,
                             const About& about) = 0;
  /// False when the section is not to be visited (it is absent and has nothing required).
  virtual bool begin_section(std::string_view name, const About& about) = 0;
  /// The same for a section that may be absent; `present` says whether the struct has a value now.
  virtual bool begin_optional_section(std::string_view name, bool present, const About& about) = 0;
  virtual void end_section() = 0;
  /// Returns how many elements to visit; a schema writer returns 1.
  virtual std::size_t begin_list(std::string_view name, std::size_t size, const About& about) = 0;
  virtual void begin_element(std::size_t index) = 0;
  virtual void end_list() = 0;
};

/// Reads a map node into `value` by its fields. Unknown keys, missing required keys, wrong types
/// and values out of range go to `diagnostics` with position, path, expected value and the nearest
/// known key; reading continues, so that all problems are reported at once. `ignored` keys are
/// skipped (another reader handles them, such as a layer's `type` and `from`).
class Reader;

template <class S>
void read(const Node& node,
          S& value,
          Diagnostics& diagnostics,
          std::span<const std::string_view> ignored = {});

}  // namespace halfstep::config

#include "config/reader.h"
