#include "config/describe.h"

#include <fmt/format.h>

#include <cmath>

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

std::string written(bool value) { return value ? "true" : "false"; }
std::string written(std::int64_t value) { return std::to_string(value); }
std::string written(double value) { return shortest(value); }
std::string written(const std::string& value) { return value; }

template <class List>
std::string written_list(const List& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + written(value);
  return "[" + text + "]";
}

class Describer final : public Fields {
 public:
  std::vector<FieldDoc> take() { return std::move(fields_); }

  void field(std::string_view name, bool& value, const About& about) override {
    add(name, "true or false", about).usual = written(value);
  }
  void field(std::string_view name, std::int64_t& value, const About& about) override {
    add(name, "integer", about).usual = written(value);
  }
  void field(std::string_view name, double& value, const About& about) override {
    add(name, "number", about).usual = written(value);
  }
  void field(std::string_view name, std::string& value, const About& about) override {
    add(name, "text", about).usual = value;
  }
  void field(std::string_view name, DType& value, const About& about) override {
    FieldDoc& field = add(name, "one of", about);
    field.usual = halfstep::name(value);
    for (const DType dtype : all_dtypes()) field.words.emplace_back(halfstep::name(dtype));
  }
  void field(std::string_view name, Pair& value, const About& about) override {
    FieldDoc& field = add(name, "integer or [integer, integer]", about);
    field.usual = value[0] == value[1] ? written(value[0]) : written_list(value);
  }
  void field(std::string_view name, std::vector<std::int64_t>& value, const About& a) override {
    add(name, "list of integers", a).usual = written_list(value);
  }
  void field(std::string_view name, std::vector<double>& value, const About& about) override {
    add(name, "list of numbers", about).usual = written_list(value);
  }
  void field(std::string_view name, std::vector<std::string>& value, const About& a) override {
    add(name, "word or list of words", a).usual = written_list(value);
  }
  void field(std::string_view name, std::vector<NamedExtents>&, const About& a) override {
    add(name, "map from names to lists of integers", a).usual = "{}";
  }
  void field(std::string_view name, std::optional<bool>& value, const About& a) override {
    add_optional(name, "true or false", value, a);
  }
  void field(std::string_view name, std::optional<std::int64_t>& v, const About& a) override {
    add_optional(name, "integer", v, a);
  }
  void field(std::string_view name, std::optional<double>& value, const About& a) override {
    add_optional(name, "number", value, a);
  }
  void field(std::string_view name, std::optional<std::string>& value, const About& a) override {
    add_optional(name, "text", value, a);
  }
  void field(std::string_view name,
             Typed& value,
             std::span<const std::string_view> types,
             const About& about) override {
    FieldDoc& field = add(name, "name or map", about);
    field.kind = name;
    field.words.assign(types.begin(), types.end());
    if (!value.type.empty()) field.usual = value.type;
  }
  void field(std::string_view name,
             std::optional<Typed>& value,
             std::span<const std::string_view> types,
             const About& about) override {
    FieldDoc& field = add(name, "name or map", about);
    field.kind = name;
    field.words.assign(types.begin(), types.end());
    field.nullable = true;
    field.usual = value ? value->type : "null";
  }
  void node(std::string_view name, Node&, const About& about) override {
    add(name, "value", about).kind = name;
  }

 protected:
  void word(std::string_view name,
            std::size_t& index,
            std::span<const std::string_view> names,
            const About& about) override {
    FieldDoc& field = add(name, "one of", about);
    field.words.assign(names.begin(), names.end());
    field.usual = names[index];
  }
  void optional_word(std::string_view name,
                     std::optional<std::size_t>& index,
                     std::span<const std::string_view> names,
                     const About& about) override {
    FieldDoc& field = add(name, "one of", about);
    field.words.assign(names.begin(), names.end());
    field.nullable = true;
    field.usual = index ? std::string(names[*index]) : "null";
  }
  bool begin_section(std::string_view name, const About& about) override {
    open(name, "section", about);
    return true;
  }
  bool begin_optional_section(std::string_view name, bool present, const About& about) override {
    FieldDoc& field = open(name, "section", about);
    field.nullable = true;
    if (!present) field.usual = "null";
    return true;
  }
  void end_section() override { prefixes_.pop_back(); }
  std::size_t begin_list(std::string_view name, std::size_t, const About& about) override {
    open(name, "list of sections", about).usual = "[]";
    return 1;
  }
  void begin_element(std::size_t) override { prefixes_.push_back(prefixes_.back()); }
  void end_list() override { prefixes_.pop_back(); }

 private:
  FieldDoc& add(std::string_view name, std::string_view type, const About& about) {
    FieldDoc field;
    field.name = name;
    field.path = prefixes_.back() + std::string(name);
    field.doc = about.doc;
    field.unit = take_unit(field.doc);
    field.type = type;
    field.required = about.required;
    if (std::isfinite(about.min)) field.min = about.min;
    if (std::isfinite(about.max)) field.max = about.max;
    field.above = about.above;
    field.below = about.below;
    field.bare = about.bare;
    fields_.push_back(std::move(field));
    return fields_.back();
  }

  template <class T>
  void add_optional(std::string_view name,
                    std::string_view type,
                    const std::optional<T>& value,
                    const About& about) {
    FieldDoc& field = add(name, type, about);
    field.nullable = true;
    field.usual = value ? written(*value) : "null";
  }

  FieldDoc& open(std::string_view name, std::string_view type, const About& about) {
    FieldDoc& field = add(name, type, about);
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
    if (field.required) field.usual.reset();
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
