#pragma once
// The page of each kind of report, without its frame (see markup.h), and the parts they share.

#include <string>

#include "report/export/summary.h"

namespace halfstep::report::page {

std::string body(const TrainReport& report);
std::string body(const CompareReport& report);
std::string body(const BenchReport& report);
std::string body(const EvalReport& report);
std::string body(const ExplainReport& report);

/// Layers by phases of the step, each op colored by its compute dtype, with dtypes, kernel and
/// reason on hover; below it the same as a table.
std::string op_map(const std::vector<analysis::OpInfo>& ops);
std::string op_map(const std::vector<analysis::ExplainedOp>& ops);

/// Accuracy per class and the confusion matrix; "" without classes.
std::string classes(const std::optional<Classes>& classes);

/// Command, configuration, commit and machine.
std::string origin(const Summary& run, const Context& context, const ConfigBlock* config);
/// The command and the directory of a run or study.
Summary run_summary(const std::vector<std::string>& command, const std::string& directory);

std::string notes(const std::vector<std::string>& notes, const std::vector<WarningBlock>& warnings);

}  // namespace halfstep::report::page
