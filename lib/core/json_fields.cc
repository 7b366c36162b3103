#include "core/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "core/json_field_common.h"

namespace halfstep {
namespace {

Nonfinite kind_of(double value) {
  return std::isnan(value) ? Nonfinite::nan : value > 0 ? Nonfinite::inf : Nonfinite::negative_inf;
}

Json real(double value, const JsonFormat& format) {
  if (std::isfinite(value)) return value;
  if (!format.nonfinite_strings) return nullptr;
  return k_nonfinite_strings[static_cast<std::size_t>(kind_of(value))];
}

class Writer final : public Fields {
 public:
  Writer(const JsonFormat& format, bool as_list)
      : format_(format), json_(as_list ? Json::array() : Json::object()) {}

  void visit(std::string_view name, FieldRef field, const FieldOptions& options) override {
    if (const auto* optional = std::get_if<OptionalRef>(&field)) {
      if (options.omitted && !optional->ops->has(optional->value)) return;
    }
    add(name_in(name, options, format_), write_json(field, format_));
  }
  void visit_rest(MapRef others, const FieldOptions&) override {
    others.ops->each(
        others.value,
        [](void* writer, const std::string& key, FieldRef entry) {
          auto& self = *static_cast<Writer*>(writer);
          self.add(key, write_json(entry, self.format_));
        },
        this);
  }

  Json take() { return std::move(json_); }

 private:
  void add(std::string key, Json value) {
    if (json_.is_array()) return json_.push_back(std::move(value));
    json_[std::move(key)] = std::move(value);
  }

  const JsonFormat& format_;
  Json json_;
};

/// Stops at the first excess.
class Guard final : public nlohmann::json_sax<Json> {
 public:
  explicit Guard(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return begin(); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return begin(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

  bool key(string_t& name) override {
    Level& object = levels_.back();
    comparisons_ += object.seen.size();
    if (comparisons_ > limits_.comparisons) return found("has objects with too many members");
    object.key = name;
    if (object.seen.insert(name).second) return true;
    std::string path;
    for (const Level& level : levels_) {
      if (!level.key.empty()) path += (path.empty() ? "" : ".") + level.key;
    }
    return found(fmt::format("has the key '{}' twice", path));
  }

  std::string excess;

 private:
  struct Level {
    std::set<std::string> seen;
    std::string key;  ///< the last one; "" in an array
  };

  bool found(std::string what) {
    excess = std::move(what);
    return false;
  }
  bool value() {
    return ++values_ <= limits_.values ||
           found(fmt::format("has more than {} values", limits_.values));
  }
  bool begin() {
    if (levels_.size() >= limits_.depth) {
      return found(fmt::format("is nested more than {} levels deep", limits_.depth));
    }
    levels_.emplace_back();
    return value();
  }
  bool end() {
    levels_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::vector<Level> levels_;
  std::size_t values_ = 0;
  std::size_t comparisons_ = 0;
};

}  // namespace

std::string name_in(std::string_view name, const FieldOptions& options, const JsonFormat& format) {
  return std::string(format.old_names && !options.old_name.empty() ? options.old_name : name);
}

std::string_view type_of(const FieldRef& field) {
  return std::visit(Overloaded{[](const bool*) { return "boolean"; },
                               [](const double*) { return "number"; },
                               [](const MeasureRef&) { return "number"; },
                               [](const ConstantRef&) { return ""; },
                               [](const JsonRef& j) { return j.object ? "object" : ""; },
                               [](const StructRef& s) { return s.as_list ? "array" : "object"; },
                               [](const OptionalRef& o) { return type_of(o.ops->fresh()).data(); },
                               [](const ListRef&) { return "array"; },
                               [](const MapRef&) { return "object"; },
                               [](const std::string*) { return "string"; },
                               [](const TextOrNullRef&) { return "string"; },
                               [](const OneOfRef&) { return "string"; },
                               [](const EnumRef&) { return "string"; },
                               [](const auto*) { return "integer"; }},
                    field);
}

bool is_nullable(const FieldRef& field) {
  return std::holds_alternative<OptionalRef>(field) || std::holds_alternative<MeasureRef>(field) ||
         std::holds_alternative<TextOrNullRef>(field);
}

std::span<const std::string_view> names_of(Nonfinite) { return k_nonfinite_strings; }

std::string repr(const Json& value) {
  constexpr std::size_t k_max = 60;
  std::string text = value.is_structured()
                         ? fmt::format("{} of {}", value.type_name(), value.size())
                         : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > k_max) text = utf8(text.substr(0, k_max)) + "...";
  return text;
}

std::string utf8(std::string_view text) {
  const bool ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return std::string(text);
  const Json json = std::string(text);
  return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string find_limit_violation(std::string_view text, const JsonLimits& limits) {
  Guard guard(limits);
  Json::sax_parse(text, &guard);
  return guard.excess;
}

Json write_json(FieldRef field, const JsonFormat& format) {
  const auto text = [](const std::string& s) { return Json(utf8(s)); };
  return std::visit(
      Overloaded{
          [](const auto* number) { return Json(*number); },
          [&](const double* number) { return real(*number, format); },
          [&](const std::string* s) { return text(*s); },
          [&](const MeasureRef& m) { return real(*m.value, format); },
          [&](const TextOrNullRef& t) { return t.value->empty() ? Json(nullptr) : text(*t.value); },
          [&](const OneOfRef& w) { return text(*w.value); },
          [](const ConstantRef& c) { return std::visit([](auto v) { return Json(v); }, c.value); },
          [](const JsonRef& j) { return *j.value; },
          [](const EnumRef& e) { return Json(e.names[e.get(e.value)]); },
          [&](const StructRef& s) {
            Writer writer(format, s.as_list);
            s.fields(s.value, writer);
            return writer.take();
          },
          [&](const OptionalRef& o) {
            return o.ops->has(o.value) ? write_json(o.ops->get(o.value), format) : Json(nullptr);
          },
          [&](const ListRef& l) {
            Json list = Json::array();
            for (std::size_t i = 0; i < l.ops->size(l.value); ++i) {
              list.push_back(write_json(l.ops->at(l.value, i), format));
            }
            return list;
          },
          [&](const MapRef& m) {
            Writer writer(format, false);
            writer.visit_rest(m, {});
            return writer.take();
          }},
      field);
}

namespace {

class Tidy final : public Fields {
 public:
  explicit Tidy(NonfiniteMap& found) : found_(found) {}

  void visit(std::string_view name, FieldRef field, const FieldOptions&) override {
    below(path_.empty() ? std::string(name) : fmt::format(".{}", name), field);
  }
  void visit_rest(MapRef others, const FieldOptions&) override {
    others.ops->each(
        others.value,
        [](void* tidy, const std::string& key, FieldRef entry) {
          static_cast<Tidy*>(tidy)->visit(key, entry, {});
        },
        this);
  }

  void walk(FieldRef field) {
    std::visit(Overloaded{[&](double* number) { note(*number); },
                          [&](const MeasureRef& m) { note(*m.value); },
                          [](std::string* text) { *text = utf8(*text); },
                          [](const TextOrNullRef& t) { *t.value = utf8(*t.value); },
                          [&](const StructRef& s) { s.fields(s.value, *this); },
                          [&](const OptionalRef& o) {
                            if (!o.ops->has(o.value)) return;
                            const FieldRef inner = o.ops->get(o.value);
                            walk(inner);
                            auto* const* number = std::get_if<double*>(&inner);
                            if (number != nullptr && !std::isfinite(**number))
                              o.ops->reset(o.value);
                          },
                          [&](const ListRef& l) {
                            for (std::size_t i = 0; i < l.ops->size(l.value); ++i) {
                              below(fmt::format("[{}]", i), l.ops->at(l.value, i));
                            }
                          },
                          [&](const MapRef& m) { visit_rest(m, {}); },
                          [&](const JsonRef& j) { sanitize(*j.value, path_, found_); },
                          [](const auto&) {}},
               field);
  }

 private:
  void note(double number) {
    if (!std::isfinite(number)) found_.emplace_back(path_, kind_of(number));
  }
  void below(const std::string& part, FieldRef field) {
    const std::size_t size = path_.size();
    path_ += part;
    walk(field);
    path_.resize(size);
  }

  NonfiniteMap& found_;
  std::string path_;
};

class Lister final : public Fields {
 public:
  Lister(void (*use)(void*, const std::string&, FieldRef), void* context)
      : use_(use), context_(context) {}

  void visit(std::string_view name, FieldRef field, const FieldOptions&) override {
    use_(context_, std::string(name), field);
  }
  void visit_rest(MapRef others, const FieldOptions&) override {
    others.ops->each(others.value, use_, context_);
  }

 private:
  void (*use_)(void*, const std::string&, FieldRef);
  void* context_;
};

}  // namespace

void sanitize(Json& json, const std::string& path, NonfiniteMap& found) {
  if (json.is_number_float()) {
    const double value = json.get<double>();
    if (std::isfinite(value)) return;
    found.emplace_back(path, kind_of(value));
    json = nullptr;
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) {
      sanitize(value, path.empty() ? key : path + "." + key, found);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      sanitize(json[i], fmt::format("{}[{}]", path, i), found);
    }
  }
}

NonfiniteMap sanitize(FieldRef field) {
  NonfiniteMap found;
  Tidy(found).walk(field);
  return found;
}

void for_each_field(FieldRef structure,
                    void (*use)(void*, const std::string&, FieldRef),
                    void* context) {
  Lister lister(use, context);
  const auto& s = std::get<StructRef>(structure);
  s.fields(s.value, lister);
}

}  // namespace halfstep
