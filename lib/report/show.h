#pragma once

#include <string>

#include "report/json.h"

namespace halfstep::report {

/// A report as text for people: how it ended, precision, history, step time, skipped steps with
/// their first tensor that was not finite, warnings. Other kinds than train and eval are printed
/// member by member.
std::string show(const Json& report);

}  // namespace halfstep::report
