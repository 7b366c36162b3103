#pragma once
// Which policy each layer of a model has: `precision.policy`, `precision.overrides` and the layers'
// own `dtype`. An override by name beats the layer's own dtype, which beats an expression.

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

  /// The policy of a layer that gives `dtype` at `where`. One that computes in 16 bits is an error
  /// when the rewrite is asked for, which is to decide about that.
  precision::Resolved resolve(std::string_view layer,
                              const std::optional<std::string>& dtype,
                              const Where& where);

  /// Reports overrides that match none of the layers: an error for a name, a warning for an
  /// expression, of which one cannot be sure.
  void finish(const std::vector<std::string>& layers);

  std::vector<config::Warning> take_warnings() { return std::move(warnings_); }

 private:
  precision::Resolved choose(std::string_view layer,
                             const std::optional<std::string>& dtype,
                             const Where& where);
  void add(const UserError& error);

  Diagnostics& diagnostics_;
  std::optional<precision::PolicyMap> map_;  ///< absent: it is wrong and has been reported
  bool rewrites_ = false;
  std::vector<config::Warning> warnings_;
};

}  // namespace halfstep::nn
