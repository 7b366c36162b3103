#pragma once
// Parts shared by the formats for readers.

#include <string>
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
/// The same, said to be that of the end where a run had several.
std::string precision_words(const TrainReport& report);

/// "cuda to float16: 12 of 20 nodes, 5 casts".
std::string rewrite_words(const plan::RewriteSummary& rewrite);
/// "dynamic, 65536 to 32768".
std::string scale_words(const LossScale& scale);
/// "Inf first in dense/MatMul (forward, float16)".
std::string first_nonfinite_words(const train::SkippedStep& skip);

/// "completed, exit code 0", with the message, if any.
template <class Report>
std::string status_words(const Report& report) {
  const std::string code = word(report.exit_code);
  return report.status + (code == "-" ? "" : ", exit code " + code) +
         (report.message.empty() ? "" : ": " + report.message);
}

/// Notes and warnings, a line each.
std::vector<std::string> remark_lines(const std::vector<std::string>& notes,
                                      const std::vector<Remark>& warnings);

}  // namespace halfstep::report
