#pragma once
// The own kernels as rows that run nodes of the CPU's graphs on the device under test: how an op's
// ports and attributes become a kernel's parameters.

#include <functional>
#include <vector>

#include "backend/cuda/plugin/prepare.h"
#include "backend/kernel.h"
#include "cuda_device/device.h"

namespace halfstep::testing {

/// Rows of every family. They take host memory, copy it to the device and back.
std::vector<backend::Kernel> cuda_kernel_rows();

// The families.
std::vector<backend::Kernel> elementwise_rows();
std::vector<backend::Kernel> training_rows();
std::vector<backend::Kernel> image_rows();
std::vector<backend::Kernel> array_rows();
std::vector<backend::Kernel> attention_rows();

/// Where tensors begin from now on.
enum class Begin : std::uint8_t { aligned, behind_one_element, behind_16_bytes };
void place_tensors(Begin begin);

/// A launch whose `run` gets device addresses, outputs and workspace full of NaN, and enqueues work
/// on device().stream().
backend::Prepared launch_on_device(std::function<void(const backend::Args&)> run,
                                   std::size_t workspace_bytes = 0);

/// The same by the plugin's code for a node.
backend::Prepared prepare_by_plugin(backend::cuda::plugin::Prepare prepare,
                                    const backend::NodeView& node);
/// Kernel number `row` of a family.
template <std::vector<backend::cuda::plugin::Row> (*family)(), std::size_t row>
backend::Prepared prepare_row(const backend::NodeView& node, const backend::Capabilities&) {
  return prepare_by_plugin(family()[row].prepare, node);
}

}  // namespace halfstep::testing
