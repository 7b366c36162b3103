#pragma once
// Parts shared by the pages of several kinds of report.

#include <string>

#include "report/export/facts.h"

namespace halfstep::report::page {

/// Layers by phases of the step, each op colored by its compute dtype, with dtypes, kernel and
/// reason on hover; below it the same as a table.
std::string op_map(const std::vector<OpRow>& ops);
std::string op_map(const std::vector<ExplainedOp>& ops);

/// Accuracy per class and the confusion matrix; "" without classes.
std::string classes(const std::optional<Classes>& classes);

/// Command, configuration, commit and machine.
std::string origin(const Facts& run, const Context& context, const ConfigBlock* config);
/// The command and the directory of a run or study.
Facts run_facts(const std::vector<std::string>& command, const std::string& directory);

std::string notes(const std::vector<std::string>& notes, const std::vector<Remark>& warnings);

}  // namespace halfstep::report::page
