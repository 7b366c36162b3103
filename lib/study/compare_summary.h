#pragma once
// The arithmetic from finished runs to a comparison, without training.

#include <cstdint>
#include <string>
#include <vector>

#include "report/compare_report.h"
#include "study/gate.h"
#include "study/turns.h"

namespace halfstep::study {

/// A finished run with the data that only this process has.
struct RunRecord {
  report::ComparedRunBlock run;
  std::vector<BlockedStep> steps;   ///< steady ones
  std::vector<double> losses;       ///< of each batch
  std::vector<std::uint8_t> right;  ///< 1 for each correctly predicted example, in file order
  /// Equal for runs that took turns with each other; only blocks of such runs are paired.
  std::string turns = {};
};

struct SummaryOptions : ComparisonNames {
  double margin = 0.002;
  bool paired = true;
  bool target = false;     ///< whether a target was set
  std::string split = {};  ///< "test" or "validation": whose predictions the runs have
};

/// The status, settings, runs, pairs and policies of a comparison. Medians are taken over the
/// steady steps of all seeds, the ratio of medians over the blocks in which both ran, differences
/// over the seeds that both finished. Diverged runs are excluded from differences. Finished runs
/// that are not paired get plain ratios and differences, without intervals.
report::CompareReport summarise(const std::vector<RunRecord>& records,
                                const SummaryOptions& options);

/// Limitations of the result: few seeds, few steps counted, diverged runs, unequal hashes.
std::vector<std::string> comparison_notes(const report::CompareReport& comparison);

}  // namespace halfstep::study
