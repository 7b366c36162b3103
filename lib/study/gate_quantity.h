#pragma once
// The quantities that gates can name: the columns of a comparison.

#include <optional>
#include <string>
#include <string_view>

#include "study/gate.h"

namespace halfstep::study {

/// Whose value a quantity is: a policy's or one of its metrics', or the difference of either from
/// the baseline, which the baseline itself does not have.
enum class Owner { policy, difference, metric, metric_difference };

/// A quantity by its name.
struct QuantityField {
  std::string_view name;
  Owner owner;
  std::optional<double> (*get)(const report::PolicyBlock& policy,
                               const report::MetricEstimate* metric);
  bool flag = false;  ///< boolean, 1 or 0 as a number

  bool of_metric() const { return owner == Owner::metric || owner == Owner::metric_difference; }
  bool of_baseline() const { return owner == Owner::policy || owner == Owner::metric; }
};

struct Quantity {
  std::string policy;
  std::string metric;  ///< "" for the policy's own
  const QuantityField* field = nullptr;
};

/// Errors: UserError(config) with the nearest name.
Quantity resolve_quantity(const std::string& text, const ComparisonNames& names);

/// The value of a quantity; nothing where the comparison has none, as one seed has no interval.
std::optional<double> value_of(const Quantity& quantity, const report::CompareReport& comparison);

}  // namespace halfstep::study
