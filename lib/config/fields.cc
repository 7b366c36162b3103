#include "config/fields.h"

#include <algorithm>

namespace halfstep::config {

void Fields::one_of(std::string_view name,
                    std::string& value,
                    std::span<const std::string_view> words,
                    const About& about) {
  const auto found = std::find(words.begin(), words.end(), value);
  auto index = static_cast<std::size_t>(found == words.end() ? 0 : found - words.begin());
  word(name, index, words, about);
  value = words[index];
}

void Fields::one_of(std::string_view name,
                    std::optional<std::string>& value,
                    std::span<const std::string_view> words,
                    const About& about) {
  std::optional<std::size_t> index;
  if (value) {
    const auto found = std::find(words.begin(), words.end(), *value);
    if (found != words.end()) index = static_cast<std::size_t>(found - words.begin());
  }
  optional_word(name, index, words, about);
  value = index ? std::optional<std::string>(words[*index]) : std::nullopt;
}

}  // namespace halfstep::config
