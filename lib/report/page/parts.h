#pragma once
// Parts that the pages of several kinds of report have.

#include <string>

#include "report/json.h"

namespace halfstep::report::page {

/// Layers by phases of the step, each op coloured by the dtype it computes in, with its dtypes,
/// kernel and the reason on hover; below it the same as a table. `ops` of a precision block or of
/// an explanation.
std::string op_map(const Json& ops);

/// Accuracy per class and the confusion matrix; "" for null.
std::string classes(const Json& classes);

/// Command, configuration, commit and machine, as far as the report has them.
std::string origin(const Json& report);

/// Notes and warnings.
std::string notes(const Json& report);

}  // namespace halfstep::report::page
