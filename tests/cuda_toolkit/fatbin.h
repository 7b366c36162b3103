#pragma once
// Which GPUs a compiled file carries code for.

#include <filesystem>
#include <set>
#include <string>

namespace halfstep::testing {

/// "sm_90" for machine code, "compute_90" for PTX, which newer GPUs can be given; read from the
/// containers that nvcc puts into objects.
std::set<std::string> gpu_code(const std::filesystem::path& file);

}  // namespace halfstep::testing
