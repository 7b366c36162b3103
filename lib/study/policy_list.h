#pragma once
// Policies by their names on the command line.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"

namespace halfstep::study {

/// A config under one policy.
struct Variant {
  std::string name;
  config::RunSpec spec;
};

/// The names in `float32, mixed_bfloat16`; spaces around them are ignored. Errors:
/// UserError(config) for an empty or repeated name; `flag` is named in it.
std::vector<std::string> split_policies(std::string_view list, const std::string& flag);

/// The settings precision.* of a policy's name.
struct PolicySettings {
  std::string_view policy, rewrite;
  std::string_view target = {};  ///< "" leaves it unchanged
};
/// Those of a name that make_variant() accepts; nothing for others.
std::optional<PolicySettings> policy_settings(std::string_view name);

/// The config `base.source` under a policy: one of config::k_policy_names, or `rewrite:bfloat16`,
/// `rewrite:float16` (policy float32 and the automatic rewrite to that dtype), or `rewrite` (to the
/// device's default). All other settings are unchanged. Errors: UserError(config) for unknown
/// names, and for settings that conflict with the policy.
Variant make_variant(const config::RunSpec& base, const std::string& name, const std::string& flag);

}  // namespace halfstep::study
