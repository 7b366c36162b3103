#pragma once
// Reflection of structs: one declaration of the fields serves JSON output, JSON input, JSON Schema
// and comparison. A struct S with this reflection has a member
//
//     void fields(Fields& f) { f("loss_scale", loss_scale, "factor; null without scaling"); ... }
//
// A visitor (core/json_fields.h) implements the one function visit(). Fields are numbers, strings,
// enums with a name table, other described structs, and optionals, lists and maps of all of these.
// An enum E is a field when ADL finds `std::span<const std::string_view> names_of(E)`: its values
// count from 0 in the order of the names.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/field_types.h"

namespace halfstep {

class Fields {
 public:
  virtual ~Fields() = default;
  virtual void visit(std::string_view name, FieldRef field, const FieldOptions& options) = 0;
  /// The members of the enclosing object that no field names; written at this position.
  virtual void visit_rest(MapRef others, const FieldOptions& options) = 0;
  /// Whether the visitor assigns values to fields.
  virtual bool reads() const { return false; }

  template <class T>
  void operator()(std::string_view name, T& value, const FieldOptions& options);
  template <class T>
  void operator()(std::string_view name, T& value, std::string_view doc) {
    (*this)(name, value, FieldOptions{.doc = doc});
  }
  template <class M>
  void rest(M& others, const FieldOptions& options);

  void measure(std::string_view name, double& value, std::string_view doc) {
    visit(name, MeasureRef{&value}, {.doc = doc});
  }
  /// From 0 to 1.
  void fraction(std::string_view name, double& value, std::string_view doc) {
    visit(name, &value, {.doc = doc, .min = 0, .max = 1});
  }
  void text_or_null(std::string_view name, std::string& value, std::string_view doc) {
    visit(name, TextOrNullRef{&value}, {.doc = doc});
  }
  void one_of(std::string_view name,
              std::string& value,
              std::span<const std::string_view> words,
              std::string_view doc) {
    visit(name, OneOfRef{&value, words}, {.doc = doc});
  }
  void constant(std::string_view name, std::int64_t value, std::string_view doc) {
    visit(name, ConstantRef{value}, {.doc = doc});
  }
  void constant(std::string_view name, std::string_view value, std::string_view doc) {
    visit(name, ConstantRef{value}, {.doc = doc});
  }
  void json(std::string_view name,
            nlohmann::ordered_json& value,
            std::string_view doc,
            bool object = false) {
    visit(name, JsonRef{&value, object}, {.doc = doc});
  }
};

template <class T>
void Fields::operator()(std::string_view name, T& value, const FieldOptions& options) {
  visit(name, field_ref(value), options);
}

template <class M>
void Fields::rest(M& others, const FieldOptions& options) {
  visit_rest(std::get<MapRef>(field_ref(others)), options);
}

}  // namespace halfstep
