#pragma once
// Keras's dtype policies: the compute dtype of a layer and the storage dtype of its variables.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/pattern.h"

namespace halfstep::precision {

struct Policy {
  std::string_view name;
  DType compute = DType::float32;
  DType variable = DType::float32;

  bool operator==(const Policy&) const = default;
};

/// float32, mixed_float16, mixed_bfloat16, float16, bfloat16.
std::span<const Policy> all_policies();
const Policy* policy_named(std::string_view name);

/// `match` is a layer's path, or "re:" and a regular expression (core/pattern.h) that must match
/// the whole path.
struct Override {
  std::string match;
  std::string policy;
  Where where;
};

/// The policy of a layer and its reason ("policy mixed_float16", "override 're:^n.*'", ...).
struct ResolvedPolicy {
  Policy policy;
  std::string reason;
};

/// The rule of Keras's DTypePolicyMap: an exact name has precedence, then the one expression that
/// matches, then the default.
class PolicyMap {
 public:
  /// Errors: UserError(config) for an unknown policy, an invalid expression or a duplicate `match`.
  PolicyMap(Policy default_policy, std::vector<Override> overrides);
  /// Errors: UserError(config) naming both expressions when two match.
  ResolvedPolicy resolve(std::string_view layer_path) const;
  /// The override whose `match` is exactly the layer's name, or nullptr.
  const Override* exact(std::string_view layer_path) const;
  /// Whether overrides()[i] applies to this layer, by name or by expression.
  bool matches(std::size_t i, std::string_view layer_path) const;
  const Policy& default_policy() const { return default_; }
  std::span<const Override> overrides() const { return overrides_; }

 private:
  Policy default_;
  std::vector<Override> overrides_;
  std::vector<std::optional<Pattern>> patterns_;  ///< of each override; nothing for a plain name
};

}  // namespace halfstep::precision
