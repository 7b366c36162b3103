#pragma once
// The quantities that gates can name: the columns of a comparison.

#include <optional>
#include <string>

#include "study/gate.h"

namespace halfstep::study {

/// A name of a policy's own quantities or of a metric's.
struct QuantityField {
  std::string_view name;
  bool of_metric = false;
  bool of_baseline = true;  ///< false for what compares with the baseline
  bool flag = false;        ///< true or false, 1 or 0 as a number
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

/// Nothing where the comparison could not say: one seed has no interval.
std::optional<double> value_of(const Quantity& quantity, const train::Comparison& comparison);

}  // namespace halfstep::study
