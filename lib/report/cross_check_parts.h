#pragma once
// Checks of blocks that several kinds of report have. `path` is where the block stands.

#include <string>
#include <vector>

#include "report/schema.h"

namespace halfstep::report {

/// Columns of one length, epochs in order.
void check_history(const Json& history, const std::string& path, std::vector<Violation>& found);

/// Columns of one length, steps in order, an interval each.
void check_step_history(const Json& history,
                        const std::string& path,
                        std::vector<Violation>& found);

/// Percentiles rise; there are times exactly where steps were counted; the histogram
/// counts them all.
void check_step_time(const Json& time, const std::string& path, std::vector<Violation>& found);

/// Whether two numbers are the same but for rounding, 1e-8 of their size for each of `terms`
/// numbers that are summed. Null is the same as null.
bool agrees(const Json& a, const Json& b, std::size_t terms = 1);

/// The ends of an interval are in order; null is fine.
void check_interval(const Json& interval, const std::string& path, std::vector<Violation>& found);

/// Says at `path` that `given` should be `wanted`, unless they agree.
void check_agrees(const Json& given,
                  const Json& wanted,
                  const std::string& path,
                  const std::string& source,
                  std::vector<Violation>& found,
                  std::size_t terms = 1);

}  // namespace halfstep::report
