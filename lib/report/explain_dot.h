#pragma once

#include <string>

#include "report/explain_report.h"

namespace halfstep::report {

/// Graphviz: a box per op, green in 16 bits, red where a denied op keeps it in float32, layers as
/// clusters, casts as small ellipses; an edge per value. `verbose`: includes the backward pass and
/// the updates.
std::string to_dot(const Explanation& explanation, bool verbose = false);

}  // namespace halfstep::report
