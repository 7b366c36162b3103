#pragma once
// TensorFlow's own environment variables of the rewrite,
// TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_<suffix>. The caller reads the environment.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precision/rewrite.h"

namespace halfstep::precision {

/// The value of an environment variable, or nothing when it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

/// Common prefix of these variables.
inline constexpr std::string_view k_variable_prefix = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_";

/// Applies LEVEL, {ALLOW,INFER,DENY,CLEAR}LIST_{ADD,REMOVE}, the older WHITELIST, GRAYLIST and
/// BLACKLIST pairs (after those), IGNORE_PERFORMANCE, SIMULATE_GPU and EMULATE_FP16 to `options`.
/// A value that cannot be parsed leaves the default, as in TensorFlow, and is returned as a
/// warning.
std::vector<Problem> apply_tensorflow_variables(const Variables& variables,
                                                RewriteOptions& options);

}  // namespace halfstep::precision
