#pragma once
// Algorithms on whole ranges that C++20 lacks.

#include <algorithm>
#include <functional>
#include <ranges>
#include <vector>

namespace halfstep {

/// Whether an element is equal to `value`: std::ranges::contains of C++23.
template <std::ranges::input_range Range, class T>
constexpr bool contains(const Range& range, const T& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

/// The first element whose projection is equal to `value`, or null.
template <std::ranges::forward_range Range, class T, class Projection>
constexpr auto* find_or_null(Range&& range, const T& value, Projection projection) {
  const auto found = std::ranges::find(range, value, projection);
  return found == std::ranges::end(range) ? nullptr : &*found;
}

/// A vector of T, constructed from the results of `function` for each element.
template <class T, std::ranges::input_range Range, class Function>
std::vector<T> mapped(Range&& range, Function function) {
  std::vector<T> results;
  if constexpr (std::ranges::sized_range<Range>) results.reserve(std::ranges::size(range));
  for (auto&& element : range) results.emplace_back(std::invoke(function, element));
  return results;
}

}  // namespace halfstep
