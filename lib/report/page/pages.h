#pragma once
// The page of each kind of report, without its frame (markup.h has that).

#include <string>

#include "report/json.h"

namespace halfstep::report::page {

std::string train_body(const Json& report);
std::string compare_body(const Json& report);
std::string bench_body(const Json& report);
std::string eval_body(const Json& report);
std::string explain_body(const Json& report);

}  // namespace halfstep::report::page
