#pragma once
// Helpers that the writer, the reader and the schema of fields (core/json_fields.h) share.

#include <array>
#include <string>
#include <string_view>

#include "core/json_fields.h"

namespace halfstep {

inline constexpr std::array<std::string_view, 3> k_nonfinite_strings{"nan", "inf", "-inf"};

/// A visitor of a variant from one function for each alternative.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// The name of a field in a format.
std::string name_in(std::string_view name, const FieldOptions& options, const JsonFormat& format);
/// The type of a field in JSON Schema, "" for constants and JSON of any type.
std::string_view type_of(const FieldRef& field);
bool is_nullable(const FieldRef& field);

}  // namespace halfstep
