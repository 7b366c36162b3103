#include "study/policy_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/merge.h"
#include "core/error.h"
#include "core/ranges.h"

namespace halfstep::study {
namespace {

struct NamedPolicy {
  std::string_view name;
  PolicySettings settings;
};

std::vector<NamedPolicy> named_policies() {
  std::vector<NamedPolicy> policies;
  for (const std::string_view policy : config::k_policy_names) {
    policies.push_back({policy, {policy, "none"}});
  }
  policies.push_back({"rewrite", {"float32", "auto"}});
  policies.push_back({"rewrite:bfloat16", {"float32", "auto", "bfloat16"}});
  policies.push_back({"rewrite:float16", {"float32", "auto", "float16"}});
  return policies;
}

std::string trimmed(std::string_view name) {
  const std::size_t begin = name.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(name.substr(begin, name.find_last_not_of(" \t") - begin + 1));
}

[[noreturn]] void fail(const std::string& flag, std::string message, std::string hint = {}) {
  throw UserError(ErrorKind::config, {flag, 0, 0, ""}, std::move(message), std::move(hint));
}

}  // namespace

std::vector<std::string> split_policies(std::string_view list, const std::string& flag) {
  std::vector<std::string> policies;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = trimmed(list.substr(begin, end - begin));
    if (name.empty()) fail(flag, fmt::format("an empty name in '{}'", list));
    if (contains(policies, name)) fail(flag, fmt::format("'{}' is listed twice", name));
    policies.push_back(name);
    begin = end + 1;
  }
  return policies;
}

std::optional<PolicySettings> policy_settings(std::string_view name) {
  const std::vector<NamedPolicy> policies = named_policies();
  const auto known = std::ranges::find(policies, name, &NamedPolicy::name);
  if (known == policies.end()) return std::nullopt;
  return known->settings;
}

Variant make_variant(const config::RunSpec& base,
                     const std::string& name,
                     const std::string& flag) {
  const std::optional<PolicySettings> known = policy_settings(name);
  if (!known) {
    const auto names = mapped<std::string>(named_policies(), &NamedPolicy::name);
    const std::string nearest = did_you_mean(name, names);
    fail(flag,
         fmt::format("unknown policy '{}'", name),
         nearest.empty() ? fmt::format("known: {}", fmt::join(names, ", ")) : nearest);
  }
  Diagnostics diagnostics;
  config::Node node = base.source;
  const auto set = [&](std::string_view key, std::string_view value) {
    config::apply(node,
                  {config::Override::Kind::set,
                   fmt::format("precision.{}", key),
                   std::string(value),
                   fmt::format("{} {}", flag, name)},
                  diagnostics);
  };
  set("policy", known->policy);
  set("rewrite", known->rewrite);
  if (!known->target.empty()) set("target", known->target);
  if (known->rewrite == "none" && base.precision.rewrite == config::Rewrite::automatic) {
    // Settings of the base's rewrite are not an error under another policy.
    std::erase_if(node.find("precision")->entries, [](const config::Node::Entry& entry) {
      return contains(std::array{"target", "level", "lists", "rewrite_rules"}, entry.key);
    });
  }
  Variant variant{name, config::parse_run_spec(node, diagnostics)};
  diagnostics.throw_if_any();
  variant.spec.precision.tensorflow_variables = base.precision.tensorflow_variables;
  return variant;
}

}  // namespace halfstep::study
