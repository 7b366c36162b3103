#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/json_field_common.h"
#include "core/ranges.h"
#include "core/system.h"

namespace halfstep {
namespace {

/// A document with so many is of another kind; no more of them are looked for.
constexpr std::size_t k_max_violations = 1000;

/// Whether a number is whole and fits 64 bits.
std::optional<std::int64_t> whole(const Json& value) {
  constexpr double k_two_63 = 9223372036854775808.0;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return {};
  const double real = value.get<double>();
  if (real != std::floor(real) || std::abs(real) >= k_two_63) return {};
  return static_cast<std::int64_t>(real);
}

class Reader {
 public:
  Reader(std::vector<Violation>& found, const JsonFormat& format)
      : found_(found), format_(format) {}

  void read(const Json& json, FieldRef field, const FieldOptions& options, bool nullable = false);
  void violation(std::string message) { found_.push_back({path_, std::move(message)}); }
  /// Reads an element or member at the end of the path.
  void below(std::string_view part, const Json& json, FieldRef field, const FieldOptions& options) {
    if (found_.size() >= k_max_violations) return;
    const std::size_t size = path_.size();
    extend(part);
    read(json, field, options);
    path_.resize(size);
  }
  void violation_below(std::string_view part, std::string message) {
    if (found_.size() >= k_max_violations) return;
    const std::size_t size = path_.size();
    extend(part);
    violation(std::move(message));
    path_.resize(size);
  }
  const JsonFormat& format() const { return format_; }

 private:
  void extend(std::string_view part) {
    if (!path_.empty() && !part.starts_with('[')) path_ += '.';
    path_ += part;
  }
  void refuse(const Json& json, const FieldRef& field, bool nullable) {
    violation(
        fmt::format("is {}, must be {}{}", repr(json), type_of(field), nullable ? " or null" : ""));
  }
  void read_number(const Json& json, double& value, const FieldOptions& options, bool nullable);
  void read_whole(const Json& json, FieldRef field, const FieldOptions& options, bool nullable);
  void read_one_of(const Json& json,
                   FieldRef field,
                   std::span<const std::string_view> words,
                   bool nullable);
  void read_list(const Json& json, const ListRef& list, const FieldOptions& options, bool nullable);

  std::vector<Violation>& found_;
  const JsonFormat& format_;
  std::string path_;
};

/// The fields of one object, or of a list of values.
class Members final : public Fields {
 public:
  Members(Reader& reader, const Json& json) : reader_(reader), json_(json) {}

  bool reads() const override { return true; }
  void visit(std::string_view given, FieldRef field, const FieldOptions& options) override {
    const std::string name = name_in(given, options, reader_.format());
    if (json_.is_array()) {
      const std::size_t index = next_++;
      const std::string part = fmt::format("[{}]", index);
      if (index < json_.size()) return reader_.below(part, json_[index], field, options);
      return reader_.violation_below(part, "is missing");
    }
    known_.push_back(name);
    const auto it = json_.find(name);
    if (it == json_.end()) {
      if (!options.optional && !options.omitted) reader_.violation_below(name, "is missing");
      return;
    }
    const auto* optional = std::get_if<OptionalRef>(&field);
    if (options.omitted && optional != nullptr) field = optional->ops->emplace(optional->value);
    reader_.below(name, *it, field, options);
  }
  void visit_rest(MapRef others, const FieldOptions& options) override {
    rest_ = others;
    rest_options_ = options;
    others.ops->clear(others.value);
  }

  void finish() {
    if (!json_.is_object() || (!rest_ && reader_.format().skip_unknown)) return;
    for (const auto& [key, value] : json_.items()) {
      if (contains(known_, key)) continue;
      if (rest_) {
        reader_.below(key, value, rest_->ops->add(rest_->value, key), rest_options_);
        continue;
      }
      const std::string hint = did_you_mean(key, known_);
      reader_.violation_below(key,
                              "is not a member here" + (hint.empty() ? "" : " (" + hint + ")"));
    }
  }

 private:
  Reader& reader_;
  const Json& json_;
  std::vector<std::string> known_;
  std::optional<MapRef> rest_;
  FieldOptions rest_options_;
  std::size_t next_ = 0;
};

void Reader::read_number(const Json& json,
                         double& value,
                         const FieldOptions& options,
                         bool nullable) {
  if (format_.nonfinite_strings && json.is_string()) {
    const auto word = std::ranges::find(k_nonfinite_strings, json.get<std::string>());
    if (word == k_nonfinite_strings.end()) return refuse(json, &value, nullable);
    constexpr double k_inf = std::numeric_limits<double>::infinity();
    value = *word == "nan" ? std::nan("") : *word == "inf" ? k_inf : -k_inf;
    return;
  }
  if (!json.is_number()) return refuse(json, &value, nullable);
  value = json.get<double>();
  if (value < options.min) {
    violation(fmt::format("is {}, must be at least {:g}", repr(json), options.min));
  }
  if (value > options.max) {
    violation(fmt::format("is {}, must be at most {:g}", repr(json), options.max));
  }
}

void Reader::read_whole(const Json& json,
                        FieldRef field,
                        const FieldOptions& options,
                        bool nullable) {
  const std::optional<std::int64_t> number = whole(json);
  if (!number) return refuse(json, field, nullable);
  auto** const plain = std::get_if<int*>(&field);
  const auto least = plain != nullptr ? std::int64_t{std::numeric_limits<int>::min()}
                                      : static_cast<std::int64_t>(std::max(0.0, options.min));
  const auto most = plain != nullptr ? std::int64_t{std::numeric_limits<int>::max()}
                    : std::isfinite(options.max)
                        ? std::min(format_.max_integer, static_cast<std::int64_t>(options.max))
                        : format_.max_integer;
  if (*number < least) {
    return violation(fmt::format("is {}, must be at least {}", repr(json), least));
  }
  if (*number > most) {
    return violation(fmt::format("is {}, must be at most {}", repr(json), most));
  }
  if (plain != nullptr) **plain = static_cast<int>(*number);
  if (auto** count = std::get_if<std::int64_t*>(&field)) **count = *number;
  if (auto** count = std::get_if<std::uint64_t*>(&field)) {
    **count = static_cast<std::uint64_t>(*number);
  }
}

void Reader::read_one_of(const Json& json,
                         FieldRef field,
                         std::span<const std::string_view> words,
                         bool nullable) {
  if (!json.is_string()) return refuse(json, field, nullable);
  const auto& given = json.get_ref<const std::string&>();
  const auto it = std::ranges::find(words, given);
  if (it == words.end()) {
    return violation(fmt::format(
        "is {}, must be {}{}", repr(json), fmt::join(words, " or "), nullable ? " or null" : ""));
  }
  if (const auto* word = std::get_if<OneOfRef>(&field)) *word->value = given;
  if (const auto* e = std::get_if<EnumRef>(&field)) {
    e->set(e->value, static_cast<std::size_t>(it - words.begin()));
  }
}

void Reader::read_list(const Json& json,
                       const ListRef& list,
                       const FieldOptions& options,
                       bool nullable) {
  FieldOptions element = options;
  element.doc = {};
  if (options.allow_scalar && !json.is_array()) {
    list.ops->clear(list.value);
    return read(json, list.ops->add(list.value), element);
  }
  if (!json.is_array()) return refuse(json, list, nullable);
  const std::size_t size = json.size();
  if (size < list.ops->fixed) {
    return violation(fmt::format("has {} items, must have at least {}", size, list.ops->fixed));
  }
  const std::size_t most = list.ops->fixed > 0 ? list.ops->fixed : options.max_elements;
  if (most > 0 && size > most) {
    return violation(fmt::format("has {} items, must have at most {}", size, most));
  }
  if (list.ops->fixed == 0) list.ops->clear(list.value);
  for (std::size_t i = 0; i < size && found_.size() < k_max_violations; ++i) {
    const FieldRef item =
        list.ops->fixed > 0 ? list.ops->at(list.value, i) : list.ops->add(list.value);
    below(fmt::format("[{}]", i), json[i], item, element);
  }
}

void Reader::read(const Json& json, FieldRef field, const FieldOptions& options, bool nullable) {
  std::visit(Overloaded{[&](bool* flag) {
                          if (!json.is_boolean()) return refuse(json, field, nullable);
                          *flag = json.get<bool>();
                        },
                        [&](double* number) { read_number(json, *number, options, nullable); },
                        [&](std::string* text) {
                          if (!json.is_string()) return refuse(json, field, nullable);
                          *text = json.get<std::string>();
                          if (options.utc && !text->empty() && !unix_seconds(*text)) {
                            violation(fmt::format("is {}, must be a time in UTC such as {}",
                                                  repr(json),
                                                  "2026-01-31T12:00:00Z"));
                          }
                        },
                        [&](const MeasureRef& m) {
                          *m.value = std::nan("");
                          if (!json.is_null()) read_number(json, *m.value, options, true);
                        },
                        [&](const TextOrNullRef& t) {
                          t.value->clear();
                          if (!json.is_null()) read(json, t.value, options, true);
                        },
                        [&](const OneOfRef& w) { read_one_of(json, w, w.words, nullable); },
                        [&](const ConstantRef& c) {
                          const Json wanted = write_json(c);
                          if (json != wanted) {
                            violation(fmt::format("is {}, must be {}", repr(json), wanted.dump()));
                          }
                        },
                        [&](const JsonRef& j) {
                          if (j.object && !json.is_object()) return refuse(json, j, nullable);
                          *j.value = json;
                        },
                        [&](const EnumRef& e) { read_one_of(json, e, e.names, nullable); },
                        [&](const StructRef& s) {
                          if (!(s.as_list ? json.is_array() : json.is_object())) {
                            return refuse(json, s, nullable);
                          }
                          Members members(*this, json);
                          s.fields(s.value, members);
                          members.finish();
                        },
                        [&](const OptionalRef& o) {
                          if (json.is_null()) return o.ops->reset(o.value);
                          read(json, o.ops->emplace(o.value), options, true);
                        },
                        [&](const ListRef& l) { read_list(json, l, options, nullable); },
                        [&](const MapRef& m) {
                          if (!json.is_object()) return refuse(json, m, nullable);
                          if (!options.key.empty() && !json.contains(options.key)) {
                            violation_below(options.key, "is missing");
                          }
                          m.ops->clear(m.value);
                          FieldOptions element = options;
                          element.key = {};
                          for (const auto& [key, value] : json.items()) {
                            below(key, value, m.ops->add(m.value, key), element);
                          }
                        },
                        [&](auto*) { read_whole(json, field, options, nullable); }},
             field);
}

}  // namespace

void read_json(const Json& json,
               FieldRef field,
               std::vector<Violation>& found,
               const JsonFormat& format) {
  Reader(found, format).read(json, field, {});
}

}  // namespace halfstep
