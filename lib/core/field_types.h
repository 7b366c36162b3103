#pragma once
// The C++ types that can be fields (core/fields.h), and the access of visitors to their elements.

#include <array>
#include <concepts>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/field_ref.h"

namespace halfstep {

/// A member that may be absent, and null where it is present.
template <class T>
using MaybeNull = std::optional<std::optional<T>>;

namespace fields_detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
/// Flags: a vector of them has no bool to refer to.
template <class T>
struct IsList<std::deque<T>> : std::true_type {};
template <class T, std::size_t N>
struct IsList<std::array<T, N>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsMap<std::vector<std::pair<std::string, T>>> : std::true_type {};

/// An interval, written as the list of its ends.
template <class T>
concept Ends = requires(T& t) {
  { t.low } -> std::same_as<double&>;
  { t.high } -> std::same_as<double&>;
};

}  // namespace fields_detail

template <class T>
FieldRef field_ref(T& value);

namespace fields_detail {

template <class T>
FieldRef fresh_ref() {
  thread_local T k_value;
  k_value = T();
  return field_ref(k_value);
}

template <class O>
constexpr OptionalOps k_optional_ops{
    [](const void* v) { return static_cast<const O*>(v)->has_value(); },
    [](void* v) { return field_ref(**static_cast<O*>(v)); },
    [](void* v) { return field_ref(static_cast<O*>(v)->emplace()); },
    [](void* v) { static_cast<O*>(v)->reset(); },
    fresh_ref<typename O::value_type>};

template <class L>
constexpr ListOps k_vector_ops{
    [](const void* v) { return static_cast<const L*>(v)->size(); },
    [](void* v, std::size_t i) { return field_ref((*static_cast<L*>(v))[i]); },
    [](void* v) { return field_ref(static_cast<L*>(v)->emplace_back()); },
    [](void* v) { static_cast<L*>(v)->clear(); },
    fresh_ref<typename L::value_type>};

template <class A>
constexpr ListOps k_array_ops{
    [](const void* v) { return static_cast<const A*>(v)->size(); },
    [](void* v, std::size_t i) { return field_ref((*static_cast<A*>(v))[i]); },
    nullptr,
    nullptr,
    fresh_ref<typename A::value_type>,
    std::tuple_size_v<A>};

inline FieldRef fresh_measure() {
  thread_local double k_value = 0;
  return MeasureRef{&k_value};
}

template <class I>
constexpr ListOps k_interval_ops{[](const void*) -> std::size_t { return 2; },
                                 [](void* v, std::size_t i) -> FieldRef {
                                   I& interval = *static_cast<I*>(v);
                                   return MeasureRef{i == 0 ? &interval.low : &interval.high};
                                 },
                                 nullptr,
                                 nullptr,
                                 fresh_measure,
                                 2};

template <class M>
auto& add_entry(M& map, const std::string& key) {
  if constexpr (requires { map.emplace_back(); }) {
    return map.emplace_back(key, typename M::value_type::second_type()).second;
  } else {
    return map[key];
  }
}

template <class M>
constexpr MapOps k_map_ops{
    [](const void* v) { return static_cast<const M*>(v)->size(); },
    [](void* v, void (*use)(void*, const std::string&, FieldRef), void* context) {
      for (auto& [key, entry] : *static_cast<M*>(v)) use(context, key, field_ref(entry));
    },
    [](void* v, const std::string& key) { return field_ref(add_entry(*static_cast<M*>(v), key)); },
    [](void* v) { static_cast<M*>(v)->clear(); },
    fresh_ref<typename M::value_type::second_type>};

}  // namespace fields_detail

/// The reference that a visitor gets to a value.
template <class T>
FieldRef field_ref(T& value) {
  if constexpr (std::is_enum_v<T>) {
    return EnumRef{
        &value,
        names_of(T()),
        [](const void* v) { return static_cast<std::size_t>(*static_cast<const T*>(v)); },
        [](void* v, std::size_t index) { *static_cast<T*>(v) = static_cast<T>(index); }};
  } else if constexpr (requires(Fields & f) { value.fields(f); }) {
    return StructRef{
        &value, [](void* v, Fields& f) { static_cast<T*>(v)->fields(f); }, requires {T::k_as_list;
  }
};
}  // namespace halfstep
else if constexpr (fields_detail::IsOptional<T>::value) {
  return OptionalRef{&value, &fields_detail::k_optional_ops<T>};
}
else if constexpr (fields_detail::IsMap<T>::value) {
  return MapRef{&value, &fields_detail::k_map_ops<T>};
}
else if constexpr (fields_detail::IsList<T>::value) {
  if constexpr (requires { value.emplace_back(); }) {
    return ListRef{&value, &fields_detail::k_vector_ops<T>};
  } else {
    return ListRef{&value, &fields_detail::k_array_ops<T>};
  }
}
else if constexpr (fields_detail::Ends<T>) {
  return ListRef{&value, &fields_detail::k_interval_ops<T>};
}
else if constexpr (std::is_same_v<T, nlohmann::ordered_json>) {
  return JsonRef{&value};
}
else {
  return &value;
}
}

}  // namespace halfstep
