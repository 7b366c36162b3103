#pragma once
// What the formats for people have in common.

#include <string>
#include <utility>
#include <vector>

#include "report/json.h"

namespace halfstep::report {

/// "small: training in mixed_float16".
std::string title(const Json& report);

/// Name and value of what a reader wants to know first, of a training run, comparison or benchmark.
std::vector<std::pair<std::string, std::string>> main_facts(const Json& report);

/// Cells of the history, headings first, a row per epoch.
std::vector<std::vector<std::string>> history_rows(const Json& history);

/// Notes and warnings, a line each.
std::vector<std::string> remarks(const Json& report);

}  // namespace halfstep::report
