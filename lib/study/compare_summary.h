#pragma once
// From finished runs to a comparison: the arithmetic alone, without training.

#include <cstdint>
#include <string>
#include <vector>

#include "study/turns.h"
#include "train/comparison.h"

namespace halfstep::study {

/// A finished run with what only this process knows of it.
struct RunRecord {
  train::ComparedRun run;
  std::vector<BlockedStep> steps;   ///< steady ones
  std::vector<double> losses;       ///< of each batch
  std::vector<std::uint8_t> right;  ///< 1 for each example predicted rightly, in file order
};

struct SummaryOptions {
  std::vector<std::string> policies;  ///< in the order of the result
  std::string baseline;
  std::string metric;                ///< by which policies are judged
  std::vector<std::string> metrics;  ///< all there are
  double margin = 0.002;
  bool paired = true;
  bool target = false;  ///< whether a target was set
};

/// Fills runs, pairs and policies. Medians are taken over the steady steps of all seeds, the ratio
/// of medians over the blocks in which both ran, differences over the seeds that both finished.
/// Diverged runs have no part in differences. Finished runs put side by side (not paired) get
/// plain ratios and differences, without intervals.
train::Comparison summarise(const std::vector<RunRecord>& records, const SummaryOptions& options);

/// What is to be known before the numbers are believed: seeds, steps counted, diverged runs,
/// unequal hashes.
std::vector<std::string> comparison_notes(const train::Comparison& comparison);

}  // namespace halfstep::study
