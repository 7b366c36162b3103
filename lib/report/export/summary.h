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
std::string title(const ExplainReport& report);

/// Names and values of a table with two columns.
using Summary = std::vector<std::pair<std::string, std::string>>;

/// Status, machine and, of a training run, its main results.
Summary summarize(const TrainReport& report);
Summary summarize(const CompareReport& report);
Summary summarize(const BenchReport& report);

/// "mixed_float16 requested, mixed_float16 effective".
std::string precision_text(const analysis::PrecisionHead& precision);
/// The same, said to be that of the end where a run had several.
std::string precision_text(const TrainReport& report);

/// "cuda to float16: 12 of 20 nodes, 5 casts".
std::string rewrite_text(const plan::RewriteSummary& rewrite);
/// "dynamic, 65536 to 32768".
std::string scale_text(const LossScale& scale);
/// "Inf first in dense/MatMul (forward, float16)".
std::string first_nonfinite_text(const train::SkippedStep& skip);

/// "completed, exit code 0", with the message, if any.
template <class Report>
std::string status_text(const Report& report) {
  const std::string code = to_text(report.exit_code);
  return report.status + (code == "-" ? "" : ", exit code " + code) +
         (report.message.empty() ? "" : ": " + report.message);
}

/// Notes and warnings, a line each.
std::vector<std::string> note_lines(const std::vector<std::string>& notes,
                                    const std::vector<WarningBlock>& warnings);

}  // namespace halfstep::report
