#pragma once
// The plugin's kernels, with which the device under test runs nodes of the CPU's graphs.

#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/kernel.h"

namespace halfstep::testing {

/// The kernels of backend/cuda/kernel_table.h whose names begin with `prefix` ("cuda/": the own
/// ones), prepared by the plugin's code for their nodes; not those that exchange tensors with other
/// ranks. They take host memory, copy it to the device and back. Outputs and workspace are full of
/// NaN before.
std::vector<backend::Kernel> plugin_kernels(std::string_view prefix);

/// Where tensors begin from now on.
enum class Begin : std::uint8_t { aligned, behind_one_element, behind_16_bytes };
void place_tensors(Begin begin);

}  // namespace halfstep::testing
