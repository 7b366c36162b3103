#pragma once
// An explanation for a terminal, at most 100 columns wide.

#include <string>

#include "report/explain_report.h"

namespace halfstep::report {

/// Ops of the forward pass and the loss under their layers, with equal consecutive ops on one line,
/// then the totals and the hints. `verbose`: every op of the step on a separate line.
std::string to_table(const Explanation& explanation, bool verbose = false);

/// The differences between two explanations of one model, layer by layer, then the totals of both.
std::string diff_table(const Explanation& a,
                       const Explanation& b,
                       const std::string& name_a,
                       const std::string& name_b);

}  // namespace halfstep::report
