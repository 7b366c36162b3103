#include "core/choices.h"

#include "core/error.h"

namespace halfstep {

std::string choices(std::string_view given,
                    const std::vector<std::string>& known,
                    std::string_view see) {
  constexpr std::size_t k_few = 20;
  std::string all;
  if (known.size() <= k_few) {
    for (const std::string& word : known) all += (all.empty() ? "one of " : ", ") + word;
  } else if (!see.empty()) {
    all = fmt::format("'{}' lists all {}", see, known.size());
  }
  const std::string hint = did_you_mean(given, known);
  return hint.empty() || all.empty() ? hint + all : hint + " " + all;
}

}  // namespace halfstep
