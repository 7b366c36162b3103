#pragma once
// Two reports of training side by side.

#include <string>

#include "report/json.h"

namespace halfstep::report {

/// The settings, precision, end, hashes and last metrics in which two training reports differ, and
/// the ratio of their step times:
///   {"kind": "diff", "config": [{path, a, b}], "precision": [..], "outcome": [..],
///    "metrics": [{path, a, b, delta}], "step_time": {a, b, ratio}}
/// with delta = b - a and ratio = a / b, above 1 when b is faster.
Json diff(const Json& a, const Json& b);

/// The same as text, with the names the two reports go by.
std::string show_diff(const Json& diff, const std::string& a, const std::string& b);

}  // namespace halfstep::report
