#pragma once
// The page of each kind of report, without its frame (see markup.h).

#include <string>

#include "report/any_report.h"

namespace halfstep::report::page {

std::string body(const TrainReport& report);
std::string body(const CompareReport& report);
std::string body(const BenchReport& report);
std::string body(const EvalReport& report);
std::string body(const Explanation& report);

}  // namespace halfstep::report::page
