#include "graph/text_attr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/ranges.h"

namespace halfstep::graph {
namespace {

using Kind = RawValue::Kind;

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (DType d : all_dtypes()) names.emplace_back(name(d));
  return names;
}

std::optional<DType> read_dtype(const RawValue& raw) {
  return raw.kind == Kind::word ? dtype_named(raw.text) : std::nullopt;
}

/// All items read by `read`, or nothing; a value alone is a list of one.
template <class T>
std::optional<std::vector<T>> read_all(const RawValue& raw,
                                       std::optional<T> (*read)(const RawValue&)) {
  std::vector<T> values;
  if (raw.kind != Kind::list) {
    const std::optional<T> value = read(raw);
    if (!value) return std::nullopt;
    return std::vector<T>{*value};
  }
  for (const RawValue& item : raw.items) {
    const std::optional<T> value = read(item);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

template <class T>
std::optional<AttrValue> as_attr(std::optional<T> value) {
  if (!value) return std::nullopt;
  return AttrValue(std::move(*value));
}

/// Numbers of a nested list in order, as Const's `value` may be written.
void flatten(const RawValue& raw, std::vector<RawValue>& items) {
  if (raw.kind != Kind::list) {
    items.push_back(raw);
    return;
  }
  for (const RawValue& item : raw.items) flatten(item, items);
}

std::optional<AttrValue> read_text(const RawValue& raw) { return AttrValue(raw.text); }

std::optional<AttrValue> read_kind(const RawValue& raw, AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean:
      return as_attr(read_boolean(raw));
    case AttrKind::integer:
      return as_attr(read_integer(raw));
    case AttrKind::real:
      return as_attr(read_real(raw));
    case AttrKind::text:
      return read_text(raw);
    case AttrKind::shape:
      // A shape with an unknown extent or rank stays the text that was written.
      if (std::optional<Shape> shape = read_shape(raw)) return AttrValue(*shape);
      return read_text(raw);
    case AttrKind::integers:
      return as_attr(read_all(raw, read_integer));
    case AttrKind::reals:
      return as_attr(read_all(raw, read_real));
    case AttrKind::elementwise:
      return AttrValue(elementwise_body(raw.text));
  }
  return std::nullopt;
}

std::string_view describe(AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean:
      return "true or false";
    case AttrKind::integer:
      return "an integer";
    case AttrKind::real:
      return "a number";
    case AttrKind::text:
      return "a string";
    case AttrKind::shape:
      return "a shape";
    case AttrKind::integers:
      return "a list of integers";
    case AttrKind::reals:
      return "a list of numbers";
    case AttrKind::elementwise:
      return "the text of a body";
  }
  return "";
}

/// The value of an attribute of unknown kind: the syntax decides its type.
AttrValue read_by_looks(const RawValue& raw) {
  if (const auto boolean = read_boolean(raw)) return *boolean;
  if (const auto dtype = read_dtype(raw)) return *dtype;
  if (const auto integer = read_integer(raw)) return *integer;
  if (const auto real = read_real(raw)) return *real;
  if (raw.kind == Kind::list) {
    if (const auto integers = read_all(raw, read_integer)) return *integers;
    if (const auto reals = read_all(raw, read_real)) return *reals;
    if (const auto dtypes = read_all(raw, read_dtype)) return *dtypes;
  }
  return raw.text;
}

AttrValue read_constant(const RawValue& raw) {
  RawValue flat = raw;
  if (raw.kind == Kind::list) {
    flat.items.clear();
    flatten(raw, flat.items);
  }
  if (flat.kind == Kind::list || flat.kind == Kind::number) {
    if (const auto integers = read_all(flat, read_integer)) return *integers;
    if (const auto reals = read_all(flat, read_real)) return *reals;
  }
  return read_by_looks(raw);
}

std::string print_real(double value) {
  std::string text = fmt::format("{}", value);
  const bool plain = text.find_first_not_of("-0123456789") == std::string::npos;
  return plain ? text + ".0" : text;
}

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return print_real(value); }
  std::string operator()(const std::string& value) const { return print_quoted(value); }
  std::string operator()(DType value) const { return std::string(name(value)); }
  std::string operator()(const Shape& value) const { return to_string(value); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  std::string operator()(const std::vector<double>& values) const {
    std::vector<std::string> items;
    for (double value : values) items.push_back(print_real(value));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::string operator()(const std::vector<DType>& values) const {
    std::vector<std::string_view> items;
    for (DType value : values) items.push_back(name(value));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::string operator()(const ElementwiseBody& body) const {
    return print_quoted(to_string(body));
  }
};

template <class T>
std::optional<T> read_number(const RawValue& raw) {
  if (raw.kind != Kind::number) return std::nullopt;
  const std::string_view text = std::string_view(raw.text).substr(raw.text[0] == '+' ? 1 : 0);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> read_integer(const RawValue& raw) {
  return read_number<std::int64_t>(raw);
}

std::optional<double> read_real(const RawValue& raw) { return read_number<double>(raw); }

std::optional<bool> read_boolean(const RawValue& raw) {
  if (raw.kind != Kind::word) return std::nullopt;
  if (raw.text == "true") return true;
  if (raw.text == "false") return false;
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> read_integers(const RawValue& raw) {
  return raw.kind == Kind::list ? read_all(raw, read_integer) : std::nullopt;
}

std::optional<Shape> read_shape(const RawValue& raw) {
  const auto extents = read_integers(raw);
  if (!extents || extents->size() > Shape::k_max_rank) return std::nullopt;
  if (std::any_of(extents->begin(), extents->end(), [](std::int64_t e) { return e < 0; })) {
    return std::nullopt;
  }
  return Shape(*extents);
}

std::optional<AttrValue> read_attr(const RawAttr& raw, const OpDef* op, Diagnostics& diagnostics) {
  if (op == nullptr || raw.name.starts_with('_')) return read_by_looks(raw.value);
  if (const TypeAttr* type = op->type_attr(raw.name)) {
    if (type->is_list) {
      if (auto dtypes = read_all(raw.value, read_dtype)) return AttrValue(std::move(*dtypes));
    } else if (const auto dtype = read_dtype(raw.value)) {
      return AttrValue(*dtype);
    }
    diagnostics.error(raw.value.where,
                      fmt::format("'{}' of {} must be a {}, got {}",
                                  raw.name,
                                  op->name,
                                  type->is_list ? "list of dtypes" : "dtype",
                                  raw.value.text),
                      did_you_mean(raw.value.text, dtype_names()));
    return std::nullopt;
  }
  if (const AttrDef* attr = op->attr(raw.name)) {
    std::string error;
    try {
      if (std::optional<AttrValue> value = read_kind(raw.value, attr->kind)) return value;
      error = fmt::format(" must be {}, got {}", describe(attr->kind), raw.value.text);
    } catch (const ShapeError& e) {
      error = fmt::format(": {}", e.what());
    }
    diagnostics.error(raw.value.where, fmt::format("'{}' of {}{}", raw.name, op->name, error));
    return std::nullopt;
  }
  if (op->name == "Const" && raw.name == "value") return read_constant(raw.value);
  auto known = mapped<std::string>(op->types, &TypeAttr::name);
  for (const AttrDef& a : op->attrs) known.push_back(a.name);
  diagnostics.error(raw.where,
                    fmt::format("{} has no attribute '{}'", op->name, raw.name),
                    did_you_mean(raw.name, known));
  return std::nullopt;
}

std::string print_attr(const AttrValue& value) { return std::visit(Printer{}, value); }

std::string print_quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      case '"':
      case '\\':
        result += '\\';
        [[fallthrough]];
      default:
        result += c;
    }
  }
  return result + "\"";
}

}  // namespace halfstep::graph
