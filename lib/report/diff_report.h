#pragma once
// The report of the differences between two runs of one kind.

#include <optional>
#include <string>
#include <vector>

#include "report/compare_report.h"

namespace halfstep::report {

/// A member in which two reports differ.
struct Difference {
  std::string path;
  Json a, b;
  void fields(Fields& f);
};
struct MetricDifference : Difference {
  std::optional<double> delta;
  void fields(Fields& f);
};

/// Medians in ms; for a comparison the baseline's, for a benchmark the first policy's.
struct StepTimeRatio {
  std::optional<double> a, b, ratio;
  void fields(Fields& f);
};

/// The step times of one policy. `ratio`: a / b, of the medians.
struct PolicyTimePair {
  std::optional<PolicyTime> a, b;
  std::optional<double> ratio;
  void fields(Fields& f);
};

/// An estimate of both sides. `delta`: b - a; nothing where the two are against different baselines
/// or of different metrics.
template <class Estimate>
struct EstimatePair {
  std::optional<Estimate> a, b;
  std::optional<double> delta;
  void fields(Fields& f) {
    f("a", a, "of the first; null where it has none");
    f("b", b, "of the second; null where it has none");
    f("delta", delta, "b - a; null where baseline or metric differ");
  }
};

/// One policy of two comparisons or two benchmarks, which one of them may lack.
struct PolicyDifference {
  std::string policy;
  PolicyTimePair step_time;
  EstimatePair<RatioEstimate> speedup;
  EstimatePair<JudgedEstimate> accuracy_delta;  ///< nothing in benchmarks
  void fields(Fields& f);
};

struct DiffReport {
  static constexpr std::string_view k_kind = "diff",
                                    k_doc = "the differences between two runs of one kind";
  std::string of{"train"};  ///< kind of both reports
  std::vector<Difference> config, precision, outcome;
  std::vector<MetricDifference> metrics;
  StepTimeRatio step_time;
  std::vector<PolicyDifference> policies;  ///< empty for training runs
  void fields(Fields& f);
};

}  // namespace halfstep::report
