#pragma once
// Blocks of comparisons and benchmarks.

#include <string>
#include <vector>

#include "report/blocks.h"
#include "train/comparison.h"

namespace halfstep::report {

/// A comparison or benchmark as a process.
struct StudyRun {
  std::string id, directory;
  std::vector<std::string> command;
  std::string started_at, ended_at;
  void fields(Fields& f);
};

/// Estimates with the name that their value has in a report.
struct MeanEstimate : train::Estimate {
  void fields(Fields& f);
};
struct RatioEstimate : train::Estimate {
  void fields(Fields& f);
};

}  // namespace halfstep::report
