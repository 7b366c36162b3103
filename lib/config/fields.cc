#include "config/fields.h"

#include <algorithm>

namespace halfstep::config {

void Fields::field(std::string_view name,
                   Typed& value,
                   std::span<const std::string_view> types,
                   const FieldOptions& options) {
  std::optional<Typed> given(std::move(value));
  const TypedRef field{given, types, false};
  visit(name, &field, options);
  value = std::move(*given);
}

void Fields::field(std::string_view name,
                   std::optional<Typed>& value,
                   std::span<const std::string_view> types,
                   const FieldOptions& options) {
  const TypedRef field{value, types, true};
  visit(name, &field, options);
}

void Fields::choice(std::string_view name,
                    std::optional<std::size_t>& index,
                    std::span<const std::string_view> names,
                    bool nullable,
                    const FieldOptions& options) {
  if (!nullable && !index) index = 0;
  const ChoiceRef field{index, names, nullable};
  visit(name, &field, options);
}

void Fields::one_of(std::string_view name,
                    std::optional<std::string>& value,
                    std::span<const std::string_view> words,
                    bool nullable,
                    const FieldOptions& options) {
  const auto found = value ? std::ranges::find(words, *value) : words.end();
  std::optional<std::size_t> index;
  if (found != words.end()) index = static_cast<std::size_t>(found - words.begin());
  choice(name, index, words, nullable, options);
  value = index ? std::optional<std::string>(words[*index]) : std::nullopt;
}

void Fields::one_of(std::string_view name,
                    std::string& value,
                    std::span<const std::string_view> words,
                    const FieldOptions& options) {
  std::optional<std::string> given(value);
  one_of(name, given, words, false, options);
  value = *given;
}

void Fields::one_of(std::string_view name,
                    std::optional<std::string>& value,
                    std::span<const std::string_view> words,
                    const FieldOptions& options) {
  one_of(name, value, words, true, options);
}

}  // namespace halfstep::config
