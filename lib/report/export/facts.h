#pragma once
// Parts shared by the formats for readers.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/any_report.h"
#include "report/tables.h"
#include "report/text.h"

namespace halfstep::report {

/// "small: training in mixed_float16".
std::string title(const TrainReport& report);
std::string title(const CompareReport& report);
std::string title(const BenchReport& report);
std::string title(const EvalReport& report);
std::string title(const Explanation& report);

using Facts = std::vector<std::pair<std::string, std::string>>;

/// Names and values of the most important facts.
Facts main_facts(const TrainReport& report);
Facts main_facts(const CompareReport& report);
Facts main_facts(const BenchReport& report);

/// "mixed_float16 requested, mixed_float16 effective".
std::string precision_words(const PrecisionHead& precision);

/// Notes and warnings, a line each.
std::vector<std::string> remark_lines(const std::vector<std::string>& notes,
                                      const std::vector<Remark>& warnings);

}  // namespace halfstep::report
