#include "nn/layer_policies.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/warning_codes.h"
#include "core/ranges.h"

namespace halfstep::nn {
namespace {

using precision::Override;
using precision::Policy;
using precision::PolicyMap;

PolicyMap read_map(const config::RunSpec& spec) {
  const Policy* policy = precision::policy_named(spec.precision.policy);
  if (policy == nullptr) {
    throw UserError(ErrorKind::config,
                    spec.where("precision.policy"),
                    fmt::format("unknown policy '{}'", spec.precision.policy));
  }
  std::vector<Override> overrides;
  for (std::size_t i = 0; i < spec.precision.overrides.size(); ++i) {
    const config::OverrideSpec& o = spec.precision.overrides[i];
    overrides.push_back(
        {o.match, o.dtype, spec.where(fmt::format("precision.overrides[{}].match", i))});
  }
  return {*policy, std::move(overrides)};
}

std::vector<std::string> policy_names() {
  return mapped<std::string>(precision::all_policies(), &Policy::name);
}

}  // namespace

LayerPolicies::LayerPolicies(const config::RunSpec& spec, Diagnostics& diagnostics)
    : diagnostics_(diagnostics), rewrites_(spec.precision.rewrite == config::Rewrite::automatic) {
  try {
    map_ = read_map(spec);
  } catch (const UserError& error) {
    add(error);
  }
}

precision::ResolvedPolicy LayerPolicies::resolve(std::string_view layer,
                                                 const std::optional<std::string>& dtype,
                                                 const Where& where) {
  precision::ResolvedPolicy resolved = choose(layer, dtype, where);
  if (!rewrites_ || !is_half(resolved.policy.compute)) return resolved;
  Where asked = where;
  for (std::size_t i = 0; map_ && i < map_->overrides().size(); ++i) {
    if (map_->matches(i, layer)) asked = map_->overrides()[i].where;
  }
  diagnostics_.error(asked,
                     fmt::format("layer '{}' has the policy {}, but rewrite: auto needs float32",
                                 layer,
                                 resolved.policy.name),
                     "use one of the two");
  return resolved;
}

precision::ResolvedPolicy LayerPolicies::choose(std::string_view layer,
                                                const std::optional<std::string>& dtype,
                                                const Where& where) {
  const Policy* own = dtype ? precision::policy_named(*dtype) : nullptr;
  if (dtype && own == nullptr) {
    const std::vector<std::string> known = policy_names();
    diagnostics_.error(where,
                       fmt::format("must be one of {}, got '{}'", fmt::join(known, ", "), *dtype),
                       did_you_mean(*dtype, known));
  }
  if (!map_) return {};
  const Override* exact = map_->exact(layer);
  if (own != nullptr && exact == nullptr) return {*own, fmt::format("layer dtype: {}", own->name)};
  if (own != nullptr && exact->policy != own->name) {
    warnings_.push_back(config::warning(
        config::k_replaced_dtype,
        exact->where,
        fmt::format("replaces dtype {} of layer '{}' by {}", own->name, layer, exact->policy)));
  }
  try {
    return map_->resolve(layer);
  } catch (const UserError& error) {
    add(error);
    return {map_->default_policy(), {}};
  }
}

void LayerPolicies::finish(const std::vector<std::string>& layers) {
  if (!map_) return;
  for (std::size_t i = 0; i < map_->overrides().size(); ++i) {
    const Override& o = map_->overrides()[i];
    const bool used = std::ranges::any_of(
        layers, [&](const std::string& layer) { return map_->matches(i, layer); });
    if (used) continue;
    if (o.match.starts_with("re:")) {
      warnings_.push_back(config::warning(
          config::k_idle_override, o.where, fmt::format("'{}' matches no layer", o.match)));
    } else {
      diagnostics_.error(
          o.where, fmt::format("no layer is called '{}'", o.match), did_you_mean(o.match, layers));
    }
  }
}

void LayerPolicies::add(const UserError& error) {
  for (const Problem& p : error.problems()) diagnostics_.error(p.where, p.message, p.hint);
}

}  // namespace halfstep::nn
