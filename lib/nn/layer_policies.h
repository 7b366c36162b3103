#pragma once
// The policy of each layer of a model, from `precision.policy`, `precision.overrides` and the
// layers' own `dtype`. Precedence: an override by name, the layer's own dtype, an override by
// expression.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"
#include "precision/policy.h"

namespace halfstep::nn {

class LayerPolicies {
 public:
  LayerPolicies(const config::RunSpec& spec, Diagnostics& diagnostics);

  /// The policy of a layer that gives `dtype` at `where`. A 16-bit compute dtype is an error when
  /// the automatic rewrite is enabled, because the rewrite makes that choice.
  precision::ResolvedPolicy resolve(std::string_view layer,
                                    const std::optional<std::string>& dtype,
                                    const Where& where);

  /// Reports overrides that match no layer: an error for a name, a warning for an expression, which
  /// may be meant for other models.
  void finish(const std::vector<std::string>& layers);

  std::vector<config::Warning> take_warnings() { return std::move(warnings_); }

 private:
  precision::ResolvedPolicy choose(std::string_view layer,
                                   const std::optional<std::string>& dtype,
                                   const Where& where);
  void add(const UserError& error);

  Diagnostics& diagnostics_;
  std::optional<precision::PolicyMap> map_;  ///< absent: invalid, which has been reported
  bool rewrites_ = false;
  std::vector<config::Warning> warnings_;
};

}  // namespace halfstep::nn
