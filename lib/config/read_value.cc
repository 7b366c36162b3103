#include "config/read_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "config/scalar.h"
#include "core/error.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

/// Training computes in float32, so a number must not become infinite or zero in float32 unless it
/// is so in double.
Parsed<double> to_float32(const Node& node) {
  Parsed<double> parsed = to_number(node);
  if (!parsed.value) return parsed;
  using Float = std::numeric_limits<float>;
  const double size = std::abs(*parsed.value);
  const std::string_view fault = size > Float::max()                      ? "too large"
                                 : size > 0 && size < Float::denorm_min() ? "too small"
                                                                          : "";
  if (!fault.empty()) {
    parsed = {{}, fmt::format("is {} for a float32, got {}", fault, describe(node))};
  }
  return parsed;
}

/// "must be at least 1, got 0", or nothing when the value is within its bounds.
std::string out_of_range(double value, const FieldOptions& options, const Node& node) {
  const auto message = [&](std::string_view relation, double bound) {
    return fmt::format("must be {} {}, got {}", relation, shortest(bound), describe(node));
  };
  if (options.above && !(value > *options.above)) return message("above", *options.above);
  if (value < options.min) return message("at least", options.min);
  if (options.below && !(value < *options.below)) return message("below", *options.below);
  if (value > options.max) return message("at most", options.max);
  return {};
}

template <class T>
bool read_number(const Node& node,
                 T& value,
                 const FieldOptions& options,
                 Diagnostics& out,
                 Parsed<T> (*parse)(const Node&)) {
  const Parsed<T> parsed = parse(node);
  if (!parsed.value) {
    Node plain = node;
    plain.quoted = false;
    const bool quotes_only = node.quoted && parse(plain).value;
    out.error(node.where, parsed.error, quotes_only ? "remove the quotes" : "");
    return false;
  }
  const std::string fault = out_of_range(static_cast<double>(*parsed.value), options, node);
  if (!fault.empty()) {
    out.error(node.where, fault);
    return false;
  }
  value = *parsed.value;
  return true;
}

std::string_view plural(const std::int64_t*) { return "whole numbers"; }
std::string_view plural(const double*) { return "numbers"; }
std::string_view plural(const std::string*) { return "names"; }

std::string join(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string suggest(const Node& node, std::span<const std::string_view> words) {
  if (node.kind != Node::Kind::scalar) return {};
  return did_you_mean(node.text, {words.begin(), words.end()});
}

void check_type(const Node& type, std::span<const std::string_view> types, Diagnostics& out) {
  if (types.empty() || contains(types, type.text)) return;
  out.error(type.where,
            fmt::format("unknown type {}", describe(type)),
            choices(type.text, {types.begin(), types.end()}));
}

/// One number for all axes, or a list with one for each.
template <std::size_t n>
bool read_extents(const Node& node,
                  std::array<std::int64_t, n>& value,
                  std::string_view number,
                  const FieldOptions& options,
                  Diagnostics& out) {
  std::array<std::int64_t, n> all = value;
  if (node.kind == Node::Kind::scalar) {
    if (!read_value(node, all[0], options, out)) return false;
    all.fill(all[0]);
  } else if (node.kind == Node::Kind::sequence && node.items.size() == n) {
    bool good = true;
    for (std::size_t i = 0; i < n; ++i) good &= read_value(node.items[i], all[i], options, out);
    if (!good) return false;
  } else {
    const bool list = node.kind == Node::Kind::sequence;
    const std::string got = list ? fmt::format("a list of {}", node.items.size()) : describe(node);
    out.error(node.where,
              fmt::format("must be a whole number or a list of {}, got {}", number, got));
    return false;
  }
  value = all;
  return true;
}

}  // namespace

bool read_value(const Node& node, bool& value, const FieldOptions&, Diagnostics& out) {
  const Parsed<bool> parsed = to_bool(node);
  if (!parsed.value) out.error(node.where, parsed.error);
  value = parsed.value.value_or(value);
  return parsed.value.has_value();
}

bool read_value(const Node& node,
                std::int64_t& value,
                const FieldOptions& options,
                Diagnostics& out) {
  return read_number(node, value, options, out, to_integer);
}

bool read_value(const Node& node, double& value, const FieldOptions& options, Diagnostics& out) {
  return read_number(node, value, options, out, to_float32);
}

bool read_value(const Node& node, std::string& value, const FieldOptions&, Diagnostics& out) {
  Parsed<std::string> parsed = to_text(node);
  if (!parsed.value) out.error(node.where, parsed.error);
  const bool good = parsed.value.has_value();
  if (good) value = std::move(*parsed.value);
  return good;
}

bool read_value(const Node& node, DType& value, const FieldOptions&, Diagnostics& out) {
  const bool word = node.kind == Node::Kind::scalar;
  const std::optional<DType> dtype = word ? dtype_named(node.text) : std::nullopt;
  if (dtype) {
    value = *dtype;
    return true;
  }
  const auto names =
      mapped<std::string_view>(all_dtypes(), [](DType known) { return name(known); });
  out.error(
      node.where, fmt::format("must be a dtype, got {}", describe(node)), suggest(node, names));
  return false;
}

bool read_value(const Node& node, Pair& value, const FieldOptions& options, Diagnostics& out) {
  return read_extents(node, value, "two", options, out);
}

bool read_value(const Node& node, Triple& value, const FieldOptions& options, Diagnostics& out) {
  return read_extents(node, value, "three", options, out);
}

template <class T>
bool read_value(const Node& node,
                std::vector<T>& value,
                const FieldOptions& options,
                Diagnostics& out) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (node.kind == Node::Kind::scalar) {
      value = {node.text};
      return true;
    }
  }
  if (node.kind != Node::Kind::sequence) {
    const std::string_view what = plural(static_cast<const T*>(nullptr));
    out.error(node.where, fmt::format("must be a list of {}, got {}", what, describe(node)));
    return false;
  }
  std::vector<T> items(node.items.size());
  bool good = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    good = read_value(node.items[i], items[i], options, out) && good;
  }
  if (good) value = std::move(items);
  return good;
}

template <class T>
bool read_value(const Node& node,
                std::vector<NamedValue<T>>& value,
                const FieldOptions& options,
                Diagnostics& out) {
  if constexpr (std::is_same_v<NamedValue<T>, NamedNumber>) {
    if (node.kind == Node::Kind::null) {
      value.clear();
      return true;
    }
  }
  if constexpr (std::is_same_v<NamedValue<T>, NamedStrings>) {
    if (node.kind != Node::Kind::map) {
      NamedStrings list{.name = "", .where = node.where};
      if (!read_value(node, list.value, options, out)) return false;
      value.clear();
      if (!list.value.empty()) value.push_back(std::move(list));
      return true;
    }
  }
  if (node.kind != Node::Kind::map) {
    const std::string_view what = std::is_same_v<T, double> ? "numbers" : "lists of whole numbers";
    out.error(node.where,
              fmt::format("must be a map from names to {}, got {}", what, describe(node)));
    return false;
  }
  std::vector<NamedValue<T>> entries;
  bool good = true;
  for (const Node::Entry& entry : node.entries) {
    entries.push_back({.name = entry.key, .where = entry.where});
    good = read_value(entry.value, entries.back().value, options, out) && good;
  }
  if (good) value = std::move(entries);
  return good;
}

template bool read_value(const Node&,
                         std::vector<std::int64_t>&,
                         const FieldOptions&,
                         Diagnostics&);
template bool read_value(const Node&, std::vector<double>&, const FieldOptions&, Diagnostics&);
template bool read_value(const Node&, std::vector<std::string>&, const FieldOptions&, Diagnostics&);
template bool read_value(const Node&,
                         std::vector<NamedExtents>&,
                         const FieldOptions&,
                         Diagnostics&);
template bool read_value(const Node&, std::vector<NamedNumber>&, const FieldOptions&, Diagnostics&);
template bool read_value(const Node&,
                         std::vector<NamedStrings>&,
                         const FieldOptions&,
                         Diagnostics&);

std::optional<std::size_t> read_name(const Node& node,
                                     const ChoiceRef& field,
                                     const FieldOptions&,
                                     Diagnostics& out) {
  const std::span<const std::string_view> words = field.names;
  if (node.kind == Node::Kind::scalar) {
    const auto found = std::ranges::find(words, node.text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  }
  const std::string_view one_of = words.size() > 1 ? "one of " : "";
  // A list of at most four names is clearer than the nearest spelling.
  const bool few = words.size() <= 4;
  out.error(node.where,
            fmt::format("must be {}{}, got {}", one_of, join(words), describe(node)),
            few ? std::string() : suggest(node, words));
  return std::nullopt;
}

std::optional<Typed> read_name(const Node& node,
                               const TypedRef& field,
                               const FieldOptions& options,
                               Diagnostics& out) {
  Typed typed;
  typed.where = node.where;
  if (node.kind == Node::Kind::scalar) {
    typed.type = node.text;
    typed.node = Node::map({}, node.where);
    check_type(node, field.names, out);
    return typed;
  }
  if (node.kind != Node::Kind::map) {
    out.error(node.where,
              fmt::format("must be a name or a map with the key 'type', got {}", describe(node)));
    return std::nullopt;
  }
  const Node* type = node.find("type");
  if (type == nullptr && options.by_name && !node.entries.empty()) {
    typed.node = node;
    return typed;
  }
  if (type == nullptr) {
    out.error(node.where, "missing required key 'type'");
    return std::nullopt;
  }
  if (!read_value(*type, typed.type, {}, out)) return std::nullopt;
  check_type(*type, field.names, out);
  typed.where = type->where;
  typed.node = node;
  std::erase_if(typed.node.entries, [](const Node::Entry& entry) { return entry.key == "type"; });
  return typed;
}

}  // namespace halfstep::config
