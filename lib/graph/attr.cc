#include "graph/attr.h"

#include <algorithm>

#include "core/error.h"

namespace halfstep::graph {
namespace {

constexpr auto k_before = [](const Attrs::Entry& entry, std::string_view name) {
  return entry.first < name;
};

}  // namespace

Attrs::Attrs(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

const AttrValue* Attrs::find(std::string_view name) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, k_before);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

void Attrs::set(std::string_view name, AttrValue value) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, k_before);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.insert(it, {std::string(name), std::move(value)});
  }
}

void Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

template <class T>
const T& Attrs::get(std::string_view name) const {
  const AttrValue* value = find(name);
  require(value != nullptr, "no attribute '{}'", name);
  const T* typed = std::get_if<T>(value);
  require(typed != nullptr, "attribute '{}' has another type", name);
  return *typed;
}

template const bool& Attrs::get(std::string_view) const;
template const std::int64_t& Attrs::get(std::string_view) const;
template const double& Attrs::get(std::string_view) const;
template const std::string& Attrs::get(std::string_view) const;
template const DType& Attrs::get(std::string_view) const;
template const Shape& Attrs::get(std::string_view) const;
template const std::vector<std::int64_t>& Attrs::get(std::string_view) const;
template const std::vector<double>& Attrs::get(std::string_view) const;
template const std::vector<DType>& Attrs::get(std::string_view) const;
template const ElementwiseBody& Attrs::get(std::string_view) const;

}  // namespace halfstep::graph
