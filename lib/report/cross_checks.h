#pragma once
// What must hold between the members of a report and no schema can say.

#include <vector>

#include "report/schema.h"

namespace halfstep::report {

/// For every kind: the exit code fits the status, and `nonfinite` names paths that exist and are
/// null.
void check_common(const Json& report, std::vector<Violation>& found);

/// Columns of the history have one length, counts add up, times are in order.
void check_train(const Json& report, std::vector<Violation>& found);

/// The classes' counts add up to the samples.
void check_eval(const Json& report, std::vector<Violation>& found);

}  // namespace halfstep::report
