#include "config/describe.h"

#include <cmath>

#include "config/printer.h"
#include "config/scalar.h"

namespace halfstep::config {
namespace {

/// Removes the unit from the end of a doc. A unit consists of words and slashes; "[low, high]" is
/// none.
std::string take_unit(std::string& doc) {
  constexpr std::string_view k_of_units = "abcdefghijklmnopqrstuvwxyz1/ ";
  const std::size_t open = doc.rfind('[');
  if (open == std::string::npos || !doc.ends_with(']')) return {};
  const std::string unit = doc.substr(open + 1, doc.size() - open - 2);
  if (unit.empty() || unit.find_first_not_of(k_of_units) != std::string::npos) return {};
  doc.erase(open);
  while (doc.ends_with(' ')) doc.pop_back();
  return unit;
}

/// On one line, texts without quotes.
std::string written(const Node& value) {
  if (value.kind == Node::Kind::null) return "null";
  if (value.kind == Node::Kind::map) return "{}";
  if (value.kind == Node::Kind::scalar) return value.text;
  std::string text;
  for (const Node& item : value.items) text += (text.empty() ? "" : ", ") + written(item);
  return "[" + text + "]";
}

std::string_view type_of(const bool*) { return "true or false"; }
std::string_view type_of(const std::int64_t*) { return "integer"; }
std::string_view type_of(const double*) { return "number"; }
std::string_view type_of(const std::string*) { return "text"; }
std::string_view type_of(const DType*) { return "one of"; }
std::string_view type_of(const Pair*) { return "integer or [integer, integer]"; }
std::string_view type_of(const Triple*) { return "integer or [integer, integer, integer]"; }
std::string_view type_of(const std::vector<std::int64_t>*) { return "list of integers"; }
std::string_view type_of(const std::vector<double>*) { return "list of numbers"; }
std::string_view type_of(const std::vector<std::string>*) { return "word or list of words"; }
std::string_view type_of(const std::vector<NamedExtents>*) {
  return "map from names to lists of integers";
}
std::string_view type_of(const std::vector<NamedNumber>*) { return "map from names to numbers"; }
std::string_view type_of(const std::vector<NamedStrings>*) {
  return "word or list of words, or map of these by output";
}
template <class T>
std::string_view type_of(const std::optional<T>*) {
  return type_of(static_cast<const T*>(nullptr));
}
std::string_view type_of(const ChoiceRef*) { return "one of"; }
std::string_view type_of(const TypedRef*) { return "name or map"; }
std::string_view type_of(const Node*) { return "value"; }

template <class T>
void describe(FieldDoc&, const T&) {}
template <class T>
void describe(FieldDoc& field, const std::optional<T>&) {
  field.nullable = true;
}
void describe(FieldDoc& field, DType) {
  for (const DType dtype : all_dtypes()) field.words.emplace_back(name(dtype));
}
void describe(FieldDoc& field, const ChoiceRef& word) {
  field.words.assign(word.names.begin(), word.names.end());
  field.nullable = word.nullable;
}
void describe(FieldDoc& field, const TypedRef& typed) {
  field.kind = field.name;
  field.words.assign(typed.names.begin(), typed.names.end());
  field.nullable = typed.nullable;
  field.default_value = typed.value ? typed.value->type : "null";
  if (field.default_value->empty() && !typed.nullable) field.default_value.reset();
}
void describe(FieldDoc& field, const Node&) {
  field.kind = field.name;
  field.default_value.reset();
}

class Describer final : public Fields {
 public:
  std::vector<FieldDoc> take() { return std::move(fields_); }

  void visit(std::string_view name, FieldRef ref, const FieldOptions& options) override {
    FieldDoc& field = add(name, std::visit([](const auto* v) { return type_of(v); }, ref), options);
    field.default_value = written(value_node(ref));
    if (options.by_name) field.type += ", or map of these by output";
    std::visit([&field](const auto* value) { describe(field, *value); }, ref);
  }

 protected:
  bool begin_section(std::string_view name,
                     std::optional<bool> present,
                     const FieldOptions& options) override {
    FieldDoc& field = open(name, "section", options);
    field.nullable = present.has_value();
    if (present == false) field.default_value = "null";
    return true;
  }
  void end_section() override { prefixes_.pop_back(); }
  std::size_t begin_list(std::string_view name, std::size_t, const FieldOptions& options) override {
    open(name, "list of sections", options).default_value = "[]";
    return 1;
  }
  void begin_element(std::size_t) override { prefixes_.push_back(prefixes_.back()); }
  void end_list() override { prefixes_.pop_back(); }

 private:
  FieldDoc& add(std::string_view name, std::string_view type, const FieldOptions& options) {
    FieldDoc field;
    field.name = name;
    field.path = prefixes_.back() + std::string(name);
    field.doc = options.doc;
    field.unit = take_unit(field.doc);
    field.type = type;
    field.required = options.required;
    if (std::isfinite(options.min)) field.min = options.min;
    if (std::isfinite(options.max)) field.max = options.max;
    field.above = options.above;
    field.below = options.below;
    field.shorthand_key = options.shorthand_key;
    fields_.push_back(std::move(field));
    return fields_.back();
  }

  FieldDoc& open(std::string_view name, std::string_view type, const FieldOptions& options) {
    FieldDoc& field = add(name, type, options);
    prefixes_.push_back(field.path + ".");
    return field;
  }

  std::vector<FieldDoc> fields_;
  std::vector<std::string> prefixes_{""};
};

}  // namespace

std::vector<FieldDoc> describe_fields(const std::function<void(Fields& f)>& visit) {
  Describer describer;
  visit(describer);
  std::vector<FieldDoc> fields = describer.take();
  for (FieldDoc& field : fields) {
    if (field.required) field.default_value.reset();
  }
  return fields;
}

std::string allowed_range(const FieldDoc& field) {
  std::string low, high;
  if (field.min) low = "at least " + shortest(*field.min);
  if (field.above) low = "above " + shortest(*field.above);
  if (field.max) high = "at most " + shortest(*field.max);
  if (field.below) high = "below " + shortest(*field.below);
  if (field.min && field.max) return shortest(*field.min) + " to " + shortest(*field.max);
  return low + (low.empty() || high.empty() ? "" : " and ") + high;
}

}  // namespace halfstep::config
