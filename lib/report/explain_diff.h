#pragma once

#include <string>

#include "report/explain_report.h"

namespace halfstep::report {

/// The report of kind `explain_diff`: ops whose dtypes differ between two explanations.
Json diff_json(const Explanation& a,
               const Explanation& b,
               const std::string& name_a,
               const std::string& name_b);

}  // namespace halfstep::report
