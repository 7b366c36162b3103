#pragma once
// data.json of a run directory: shapes, dtypes and classes of the run's data, so that its model can
// be used, explained and exported without the data set.

#include <optional>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "report/json.h"

namespace halfstep::report {

inline constexpr std::string_view k_run_data_file = "data.json";

/// Shapes, dtypes, layout, scale and classes of a data set, and its source.
Json run_data(const data::Dataset& dataset);

/// The data set that run_data() described, without samples.
/// Errors: UserError(data) for a file that cannot be read or does not describe one.
data::Dataset read_run_data(const std::string& path);

}  // namespace halfstep::report
