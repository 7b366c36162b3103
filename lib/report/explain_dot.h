#pragma once

#include <string>

#include "report/explain_report.h"

namespace halfstep::report {

/// Graphviz: a box per op, green in 16 bits, red where a denied op keeps it in float32, layers as
/// clusters, casts as small ellipses; an edge wherever an op reads another's value. `verbose`: the
/// backward pass and the updates too.
std::string to_dot(const Explanation& explanation, bool verbose = false);

}  // namespace halfstep::report
