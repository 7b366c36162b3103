#pragma once
// A paired study of precision policies: for each seed all policies start from the same weights, use
// the same batches and random numbers, and are interleaved in time.

#include <cstdint>
#include <string>
#include <vector>

#include "study/gate.h"
#include "study/rounds.h"

namespace halfstep::study {

struct CompareOptions : StudyOptions {
  std::string baseline = "float32";  ///< the name of one of the variants
  std::int64_t seeds = 3;            ///< the config's own seed and the following ones
  double margin = 0.002;
  std::vector<Gate> gates;
};

/// The names of the comparison that these options ask for. The headline metric depends on config
/// and data: accuracy, or else the loss, on the test split, or else on validation, or else on
/// training data.
ComparisonNames names_of(const CompareOptions& options, const data::Dataset& dataset);

/// The report, to be completed (report/context.h). Errors: UserError(config) for gates that do not
/// fit, before training starts; as Session and Trainer. A diverged run is part of the result, as is
/// an interruption.
report::CompareReport compare(const CompareOptions& options,
                              const data::Dataset& dataset,
                              const backend::Backend& backend,
                              StudyObserver& observer);

}  // namespace halfstep::study
