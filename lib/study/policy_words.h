#pragma once
// Policies as a command line names them.

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

/// The words of `float32, mixed_bfloat16`; spaces around them are of no account.
/// Errors: UserError(config) for an empty or repeated word; `flag` is named in it.
std::vector<std::string> policy_words(std::string_view list, const std::string& flag);

/// The config `base.source` under a policy: one of config::k_policy_names, or `rewrite:bfloat16`,
/// `rewrite:float16` (policy float32 and the automatic rewrite to that dtype), or `rewrite` (to the
/// device's own). Everything else stays as it is given.
/// Errors: UserError(config) for unknown words, and for what does not go with the policy.
Variant make_variant(const config::RunSpec& base, const std::string& word, const std::string& flag);

}  // namespace halfstep::study
