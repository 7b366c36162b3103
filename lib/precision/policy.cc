#include "precision/policy.h"

#include <fmt/core.h>

#include <array>

#include "core/ranges.h"

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

}  // namespace

std::span<const Policy> all_policies() { return k_policies; }

const Policy* policy_named(std::string_view name) {
  return find_or_null(k_policies, name, &Policy::name);
}

PolicyMap::PolicyMap(Policy default_policy, std::vector<Override> overrides)
    : default_(default_policy), overrides_(std::move(overrides)) {
  for (std::size_t i = 0; i < overrides_.size(); ++i) {
    const Override& o = overrides_[i];
    if (policy_named(o.policy) == nullptr) {
      throw UserError(ErrorKind::config, o.where, fmt::format("unknown policy '{}'", o.policy));
    }
    patterns_.emplace_back();
    if (o.match.starts_with(k_regex_mark)) {
      patterns_.back().emplace(o.match.substr(k_regex_mark.size()));
      if (const std::string& problem = patterns_.back()->problem(); !problem.empty()) {
        throw UserError(ErrorKind::config,
                        o.where,
                        fmt::format("'{}' is not a regular expression: {}", o.match, problem));
      }
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (overrides_[k].match != o.match) continue;
      throw UserError(ErrorKind::config,
                      o.where,
                      fmt::format("'{}' is overridden twice", o.match),
                      fmt::format("first at {}", to_string(overrides_[k].where)));
    }
  }
}

bool PolicyMap::matches(std::size_t i, std::string_view layer_path) const {
  return patterns_[i] ? patterns_[i]->matches(layer_path) : overrides_[i].match == layer_path;
}

const Override* PolicyMap::exact(std::string_view layer_path) const {
  for (std::size_t i = 0; i < overrides_.size(); ++i) {
    if (!patterns_[i] && matches(i, layer_path)) return &overrides_[i];
  }
  return nullptr;
}

ResolvedPolicy PolicyMap::resolve(std::string_view layer_path) const {
  const auto chosen = [](const Override& o) {
    return ResolvedPolicy{*policy_named(o.policy), fmt::format("override '{}'", o.match)};
  };
  if (const Override* named = exact(layer_path)) return chosen(*named);
  const Override* hit = nullptr;
  for (std::size_t i = 0; i < overrides_.size(); ++i) {
    if (!matches(i, layer_path)) continue;
    const Override& o = overrides_[i];
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
  if (hit != nullptr) return chosen(*hit);
  return {default_, fmt::format("policy {}", default_.name)};
}

}  // namespace halfstep::precision
