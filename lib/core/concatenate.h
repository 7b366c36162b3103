#pragma once

#include <initializer_list>
#include <span>
#include <vector>

namespace halfstep {

/// The entries of a table, from the lists of its parts, in their order.
template <typename Entry>
std::vector<Entry> concatenate(std::initializer_list<std::span<const Entry>> lists) {
  std::vector<Entry> all;
  for (const std::span<const Entry> list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace halfstep
