#pragma once
// std::ranges::contains, which C++23 has.

#include <algorithm>
#include <ranges>

namespace halfstep {

/// Whether an element of the range is equal to `value`.
template <std::ranges::input_range Range, class T>
constexpr bool contains(const Range& range, const T& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

}  // namespace halfstep
