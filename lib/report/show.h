#pragma once

#include <string>

#include "report/any_report.h"
#include "report/text.h"

namespace halfstep::report {

/// A report as text: status, precision, history, step time, skipped steps with their first
/// non-finite tensor, warnings. Kinds other than runs, evaluations, comparisons and benchmarks are
/// printed member by member.
std::string show(const Document& document);

/// Cells of the history, headings first, a line per epoch.
Rows history_rows(const History& history);

}  // namespace halfstep::report
