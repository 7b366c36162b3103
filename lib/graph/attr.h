#pragma once
// Attributes of a node: a list of (name, value) sorted by name.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "graph/elementwise_body.h"

namespace halfstep::graph {

using AttrValue = std::variant<bool,
                               std::int64_t,
                               double,
                               std::string,
                               DType,
                               Shape,
                               std::vector<std::int64_t>,
                               std::vector<double>,
                               std::vector<DType>,
                               ElementwiseBody>;

class Attrs {
 public:
  using Entry = std::pair<std::string, AttrValue>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);

  const AttrValue* find(std::string_view name) const;
  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);

  /// The value of `name` as T. Errors: InternalError when absent or of another type.
  template <class T>
  const T& get(std::string_view name) const;
  /// The value of `name` as T, or `fallback` when absent.
  template <class T>
  T get_or(std::string_view name, T fallback) const {
    return find(name) != nullptr ? get<T>(name) : fallback;
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace halfstep::graph
