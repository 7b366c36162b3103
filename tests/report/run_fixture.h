#pragma once
// Run directories made by hand, for the tests of commands over a folder of runs.

#include <filesystem>
#include <string>
#include <string_view>

#include "report/any_report.h"
#include "report/run_index.h"

namespace halfstep::report {

/// A training report of two epochs of which the second is cut short; its exit code is that of
/// `status`. `accuracy`: of the second epoch; the step takes 10 ms times it.
Json training(std::string_view status, std::string_view started_at, double accuracy);

/// A comparison of float32, accuracy 0.9, with mixed_bfloat16, 0.8, which no run has completed.
Json comparison();

/// A benchmark of float32 and mixed_bfloat16 with these median step times in ms.
Json benchmark(double float32, double bfloat16);

EvalReport evaluation();

/// Makes a run directory with the files that every run has, and a report unless it is null; returns
/// its path.
std::string make_run(const std::filesystem::path& directory, const Json& report);

/// The run of that name. Fails the test if there is none.
const RunEntry& find(const RunIndex& index, std::string_view name);

}  // namespace halfstep::report
