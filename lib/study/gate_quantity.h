#pragma once
// The quantities that gates can name: the columns of a comparison.

#include <optional>
#include <string>

#include "study/gate.h"

namespace halfstep::study {

/// The name of a quantity of a policy or of a metric.
struct QuantityField {
  std::string_view name;
  bool of_metric = false;
  bool of_baseline = true;  ///< false for quantities relative to the baseline
  bool flag = false;        ///< boolean, 1 or 0 as a number
  std::optional<double> (*get)(const train::ComparedPolicy& policy,
                               const train::ComparedMetric* metric) = nullptr;
};

struct Quantity {
  std::string policy;
  std::string metric;  ///< "" for the policy's own
  const QuantityField* field = nullptr;
};

/// Errors: UserError(config) with the nearest name.
Quantity resolve_quantity(const std::string& text, const GateNames& names);

GateNames names_of(const train::Comparison& comparison);

/// Nothing where the comparison has no value: one seed has no interval.
std::optional<double> value_of(const Quantity& quantity, const train::Comparison& comparison);

}  // namespace halfstep::study
