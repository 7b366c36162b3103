#include "report/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "report/cross_checks.h"

namespace halfstep::report {
namespace {

using Found = std::vector<Violation>;

/// A document with so many is no report; no more of them are looked for.
constexpr std::size_t k_most_violations = 1000;

/// Whether a number is whole and fits 64 bits: the checks that follow count with it.
bool is_integral(const Json& value) {
  constexpr double k_two_63 = 9223372036854775808.0;
  if (value.is_number_unsigned()) {
    return value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
  }
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double real = value.get<double>();
  return real == std::floor(real) && std::abs(real) < k_two_63;
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  require(type == "integer", "a schema names the type '{}'", type);
  return is_integral(value);
}

bool has_any_type(const Json& value, const Json& types) {
  if (types.is_string()) return has_type(value, types.get<std::string>());
  return std::any_of(types.begin(), types.end(), [&](const Json& type) {
    return has_type(value, type.get<std::string>());
  });
}

std::string words(const Json& list) {
  if (!list.is_array()) return list.is_string() ? list.get<std::string>() : list.dump();
  std::string text;
  for (const Json& item : list) {
    text +=
        (text.empty() ? "" : " or ") + (item.is_string() ? item.get<std::string>() : item.dump());
  }
  return text;
}

class Checker {
 public:
  explicit Checker(Found& found) : found_(found) {}

  void check(const Json& value, const Json& schema, const std::string& path) {
    if (found_.size() >= k_most_violations) return;
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) found_.push_back({path, "must not be here"});
      return;
    }
    for (const auto& [keyword, rule] : schema.items()) refuse_unknown(keyword);
    if (schema.contains("type") && !has_any_type(value, schema.at("type"))) {
      found_.push_back(
          {path, fmt::format("is {}, must be {}", shown(value), words(schema.at("type")))});
      return;
    }
    if (schema.contains("const") && value != schema.at("const")) {
      found_.push_back(
          {path, fmt::format("is {}, must be {}", shown(value), schema.at("const").dump())});
    }
    if (schema.contains("enum") && !is_one_of(value, schema.at("enum"))) {
      found_.push_back(
          {path, fmt::format("is {}, must be {}", shown(value), words(schema.at("enum")))});
    }
    if (schema.contains("minimum") && value.is_number() && value < schema.at("minimum")) {
      found_.push_back(
          {path,
           fmt::format("is {}, must be at least {}", shown(value), schema.at("minimum").dump())});
    }
    if (schema.contains("maximum") && value.is_number() && value > schema.at("maximum")) {
      found_.push_back(
          {path,
           fmt::format("is {}, must be at most {}", shown(value), schema.at("maximum").dump())});
    }
    if (value.is_array()) length(value, schema, path);
    for (const char* keyword : {"oneOf", "anyOf"}) {
      if (schema.contains(keyword)) alternatives(value, schema.at(keyword), path, keyword);
    }
    if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        check(value[i], schema.at("items"), fmt::format("{}[{}]", path, i));
      }
    }
    if (value.is_object()) members(value, schema, path);
  }

 private:
  static void refuse_unknown(const std::string& keyword) {
    static constexpr std::array k_known{"$schema",
                                        "title",
                                        "description",
                                        "type",
                                        "const",
                                        "enum",
                                        "minimum",
                                        "maximum",
                                        "minItems",
                                        "maxItems",
                                        "properties",
                                        "required",
                                        "additionalProperties",
                                        "items",
                                        "oneOf",
                                        "anyOf"};
    require(std::find(k_known.begin(), k_known.end(), keyword) != k_known.end(),
            "a schema uses the keyword '{}', which is not checked",
            keyword);
  }

  static bool is_one_of(const Json& value, const Json& list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  void length(const Json& value, const Json& schema, const std::string& path) {
    if (schema.contains("minItems") && value.size() < schema.at("minItems")) {
      found_.push_back(
          {path,
           fmt::format(
               "has {} items, must have at least {}", value.size(), schema.at("minItems").dump())});
    }
    if (schema.contains("maxItems") && value.size() > schema.at("maxItems")) {
      found_.push_back(
          {path,
           fmt::format(
               "has {} items, must have at most {}", value.size(), schema.at("maxItems").dump())});
    }
  }

  void alternatives(const Json& value,
                    const Json& list,
                    const std::string& path,
                    std::string_view keyword) {
    std::size_t fitting = 0;
    for (const Json& schema : list) {
      Found wrong;
      Checker(wrong).check(value, schema, path);
      fitting += wrong.empty() ? 1 : 0;
    }
    if (fitting == 0) found_.push_back({path, "fits none of the alternatives"});
    if (fitting > 1 && keyword == "oneOf") {
      found_.push_back({path, fmt::format("fits {} alternatives, must fit one", fitting)});
    }
  }

  void members(const Json& value, const Json& schema, const std::string& path) {
    const auto at = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    if (schema.contains("required")) {
      for (const Json& name : schema.at("required")) {
        if (!value.contains(name.get<std::string>())) {
          found_.push_back({at(name.get<std::string>()), "is missing"});
        }
      }
    }
    if (!schema.contains("properties")) return;
    const Json& properties = schema.at("properties");
    for (const auto& [key, member] : value.items()) {
      if (properties.contains(key)) {
        check(member, properties.at(key), at(key));
      } else if (schema.contains("additionalProperties")) {
        unknown_member(key, member, schema, at(key));
      }
    }
  }

  void unknown_member(const std::string& key,
                      const Json& member,
                      const Json& schema,
                      const std::string& path) {
    const Json& others = schema.at("additionalProperties");
    if (others != false) return check(member, others, path);
    std::vector<std::string> known;
    for (const auto& [name, rule] : schema.at("properties").items()) known.push_back(name);
    const std::string hint = did_you_mean(key, known);
    found_.push_back({path, "is not a member here" + (hint.empty() ? "" : " (" + hint + ")")});
  }

  Found& found_;
};

}  // namespace

Found check_schema(const Json& document, const Json& schema) {
  Found found;
  Checker(found).check(document, schema, "");
  return found;
}

Found validate(const Json& report) {
  if (!report.is_object()) return {{"", "is no object"}};
  if (!report.contains("kind")) return {{"kind", "is missing, so this is no report"}};
  const Json& word = report.at("kind");
  const Kind* kind = word.is_string() ? find_kind(word.get<std::string>()) : nullptr;
  if (kind == nullptr) {
    std::vector<std::string> known;
    for (const Kind& row : kind_table()) known.emplace_back(row.name);
    return {{"kind", fmt::format("is {}, must be {}", shown(word), fmt::join(known, " or "))}};
  }
  Found found = check_schema(report, kind->schema());
  if (!found.empty()) return found;
  check_common(report, found);
  if (kind->check != nullptr) kind->check(report, found);
  return found;
}

}  // namespace halfstep::report
