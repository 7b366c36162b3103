#pragma once
// The differences between two reports of training.

#include <string>

#include "report/any_report.h"

namespace halfstep::report {

/// The settings, precision, end, hashes and last metrics in which two training reports differ, and
/// the ratio of their step times, above 1 when b is faster.
DiffReport diff(const TrainReport& a, const TrainReport& b);

/// The same as text, with the names of the two reports.
std::string show_diff(const DiffReport& diff, const std::string& a, const std::string& b);

}  // namespace halfstep::report
