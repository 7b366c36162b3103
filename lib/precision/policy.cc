#include "precision/policy.h"

#include <fmt/core.h>

#include <array>
#include <regex>

namespace halfstep::precision {
namespace {

constexpr std::array k_policies{
    Policy{"float32", DType::float32, DType::float32},
    Policy{"mixed_float16", DType::float16, DType::float32},
    Policy{"mixed_bfloat16", DType::bfloat16, DType::float32},
    Policy{"float16", DType::float16, DType::float16},
    Policy{"bfloat16", DType::bfloat16, DType::bfloat16},
};

constexpr std::string_view k_regex_mark = "re:";

bool is_expression(const Override& o) { return o.match.starts_with(k_regex_mark); }

std::regex expression(const Override& o) {
  try {
    return std::regex(o.match.substr(k_regex_mark.size()), std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    throw UserError(ErrorKind::config,
                    o.where,
                    fmt::format("'{}' is not a regular expression: {}", o.match, error.what()));
  }
}

}  // namespace

std::span<const Policy> all_policies() { return k_policies; }

const Policy* policy_named(std::string_view name) {
  for (const Policy& policy : k_policies) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

PolicyMap::PolicyMap(Policy default_policy, std::vector<Override> overrides)
    : default_(default_policy), overrides_(std::move(overrides)) {
  for (std::size_t i = 0; i < overrides_.size(); ++i) {
    const Override& o = overrides_[i];
    if (policy_named(o.policy) == nullptr) {
      throw UserError(ErrorKind::config, o.where, fmt::format("unknown policy '{}'", o.policy));
    }
    if (is_expression(o)) expression(o);
    for (std::size_t k = 0; k < i; ++k) {
      if (overrides_[k].match != o.match) continue;
      throw UserError(ErrorKind::config,
                      o.where,
                      fmt::format("'{}' is overridden twice", o.match),
                      fmt::format("first at {}", to_string(overrides_[k].where)));
    }
  }
}

bool PolicyMap::matches(const Override& o, std::string_view layer_path) {
  if (!is_expression(o)) return o.match == layer_path;
  return std::regex_match(layer_path.begin(), layer_path.end(), expression(o));
}

const Override* PolicyMap::exact(std::string_view layer_path) const {
  for (const Override& o : overrides_) {
    if (!is_expression(o) && o.match == layer_path) return &o;
  }
  return nullptr;
}

Resolved PolicyMap::resolve(std::string_view layer_path) const {
  const Override* hit = exact(layer_path);
  for (const Override& o : overrides_) {
    if (hit != nullptr && !is_expression(*hit)) break;
    if (!matches(o, layer_path)) continue;
    if (hit != nullptr) {
      throw UserError(
          ErrorKind::config,
          o.where,
          fmt::format(
              "layer '{}' is matched by both '{}' and '{}'", layer_path, hit->match, o.match),
          "an override with the layer's exact name decides");
    }
    hit = &o;
  }
  if (hit != nullptr) return {*policy_named(hit->policy), fmt::format("override '{}'", hit->match)};
  return {default_, fmt::format("policy {}", default_.name)};
}

}  // namespace halfstep::precision
