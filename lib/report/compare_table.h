#pragma once

#include <string>

#include "train/comparison.h"

namespace halfstep::report {

/// The comparison for people: a row per policy, then gates, differing config values and notes.
std::string compare_table(const train::Comparison& comparison);

/// One line about a finished run.
std::string run_line(const train::ComparedRun& run, const std::string& metric);

}  // namespace halfstep::report
