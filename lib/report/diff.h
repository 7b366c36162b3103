#pragma once
// The differences between two reports of training, of comparisons or of benchmarks.

#include <string>

#include "report/any_report.h"

namespace halfstep::report {

/// The settings, precision, end, hashes and last metrics in which two reports differ, and the ratio
/// of their step times, above 1 when b is faster. Comparisons and benchmarks have means by policy
/// as metrics, and for every policy the step times, the speed-ups and, of comparisons, the
/// differences from the baseline, equal or not.
DiffReport diff(const TrainReport& a, const TrainReport& b);
DiffReport diff(const CompareReport& a, const CompareReport& b);
DiffReport diff(const BenchReport& a, const BenchReport& b);
/// Errors: UserError(data) at `name_a` or `name_b`, the files of the reports, for another kind of
/// report and for two kinds.
DiffReport diff(const AnyReport& a,
                const std::string& name_a,
                const AnyReport& b,
                const std::string& name_b);

/// The same as text, with the names of the two reports.
std::string show_diff(const DiffReport& diff, const std::string& a, const std::string& b);

}  // namespace halfstep::report
