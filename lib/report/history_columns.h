#pragma once

#include <string>
#include <vector>

#include "report/json.h"

namespace halfstep::report {

/// The columns of a history that hold metrics: loss, accuracy, val_loss, ... in their order.
std::vector<std::string> metric_columns(const Json& history);

}  // namespace halfstep::report
