#pragma once

#include <string>

#include "report/any_report.h"
#include "report/text.h"

namespace halfstep::report {

/// A report as text for people: how it ended, precision, history, step time, skipped steps with
/// their first tensor that was not finite, warnings. Kinds that are no runs, evaluations,
/// comparisons or benchmarks are printed member by member.
std::string show(const AnyReport& report);

/// Cells of the history, headings first, a row per epoch.
Rows history_rows(const History& history);

}  // namespace halfstep::report
