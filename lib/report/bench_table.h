#pragma once

#include <string>

#include "report/bench_report.h"
#include "report/text.h"

namespace halfstep::report {

/// The benchmark as text: a line per policy, the profile by op and by layer, notes.
std::string bench_table(const BenchReport& report);

/// The cells of the first table, headings first.
Rows bench_rows(const BenchReport& report);

}  // namespace halfstep::report
