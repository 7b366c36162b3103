#pragma once
// A paired study of precision policies: for each seed all policies start from the same weights, use
// the same batches and random numbers, and are interleaved in time.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "study/compare_summary.h"
#include "study/rounds.h"

namespace halfstep::study {

struct CompareOptions : StudyOptions {
  std::string baseline = "float32";  ///< the name of one of the variants
  std::int64_t seeds = 3;            ///< the config's own seed and the following ones
  double margin = 0.002;
  std::vector<Gate> gates;
};

/// A comparison without its runs.
struct ComparisonPlan : SummaryOptions {
  std::vector<std::int64_t> seeds;
};

/// The comparison that these options ask for. The headline metric depends on config and data:
/// accuracy, or else the loss, on the test split, or else on validation, or else on training data.
/// Errors: UserError(config) for gates that do not fit.
ComparisonPlan plan_of(const CompareOptions& options, const data::Dataset& dataset);

/// The runs of a comparison, by seed, then in the order of the policies.
struct ComparisonResults {
  std::vector<RunRecord> records;
  std::map<std::string, PolicySummary> summaries;  ///< by policy
  std::set<std::string> load_notes;
  train::Status left_as = train::Status::completed;  ///< or stopped on request
};

/// Trains `variants` in turns with a seed, as round `index` of `rounds`. Empty after a stop
/// request.
std::vector<RunRecord> train_seed(const std::vector<Variant>& variants,
                                  std::int64_t seed,
                                  std::int64_t index,
                                  Rounds& rounds,
                                  StudyObserver& observer);

/// The report, to be completed (report/context.h).
report::CompareReport comparison_report(const ComparisonPlan& plan,
                                        const ComparisonResults& results,
                                        const std::vector<Gate>& gates);

/// The report, to be completed (report/context.h). Errors: UserError(config) for gates that do not
/// fit, before training starts; as Session and Trainer. A diverged run is part of the result, as is
/// an interruption.
report::CompareReport compare(const CompareOptions& options,
                              const data::Dataset& dataset,
                              const backend::Backend& backend,
                              StudyObserver& observer);

}  // namespace halfstep::study
