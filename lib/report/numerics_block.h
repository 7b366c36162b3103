#pragma once
// What sampled steps say of 16-bit values, for numerics.jsonl and the report.

#include "config/training_spec.h"
#include "report/json.h"
#include "train/tensor_numerics.h"

namespace halfstep::report {

/// One tensor's numbers; of several steps when they were merged.
Json tensor_numerics(const train::TensorNumerics& tensor);

/// `numerics` of a report; null when nothing is sampled.
Json numerics_block(const config::NumericsSpec& spec, const train::NumericsSummary& summary);

}  // namespace halfstep::report
