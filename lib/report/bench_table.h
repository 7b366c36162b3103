#pragma once

#include <string>
#include <vector>

#include "report/json.h"

namespace halfstep::report {

/// The benchmark for people, from its report: a row per policy, the profile by op and by layer,
/// notes.
std::string bench_table(const Json& report);

/// The cells of the first table, headings first.
std::vector<std::vector<std::string>> bench_rows(const Json& report);

}  // namespace halfstep::report
