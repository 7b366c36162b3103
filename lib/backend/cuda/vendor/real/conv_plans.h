#pragma once
// cuDNN's plans for a convolution, best first, for an existing GPU or for one that is only
// described.

#include <cstddef>
#include <string>
#include <vector>

#include "backend/cuda/vendor/conv_arguments.h"
#include "backend/cuda/vendor/real/descriptor.h"

namespace halfstep::backend::cuda::real {

/// A device described by cuDNN's JSON. Errors: VendorError for JSON that cuDNN rejects.
DescriptorPtr device_properties(const std::string& json);

/// The JSON of a device of this machine. Errors: VendorError.
std::string device_properties_json(int device);

/// The target GPU: the one of `handle`, or, when that is null, the described one.
struct ConvTarget {
  cudnnHandle_t handle = nullptr;
  DescriptorPtr properties;
};

/// Workspace limit of a plan, in bytes: twice the operands, and at least 64 MiB. Engines of strict
/// float32 transpose their operands to channels first; without the memory for it those are left
/// that take ten times as long.
std::size_t conv_workspace_limit(const ConvArguments& arguments);

// The unique ids of the tensors in a variant pack.
inline constexpr std::int64_t k_x_id = 1;
inline constexpr std::int64_t k_filter_id = 2;
inline constexpr std::int64_t k_y_id = 3;
inline constexpr std::int64_t k_bias_id = 4;

struct ConvPlan {
  DescriptorPtr plan;
  std::size_t workspace_bytes = 0;
  std::string description;  ///< "engine 43, Winograd"
  std::string knobs;        ///< of the engine: plans that differ in them alone are different ones
  bool tensor_cores = false;
};

/// Up to `wanted` plans in the order of cuDNN's heuristics that need at most conv_workspace_limit()
/// bytes, accumulate in float32, are not compiled at run time, and satisfy the arguments
/// (strict_float32: no tensor cores, no down-converted inputs; deterministic). Empty when there is
/// none. Errors: VendorError when cuDNN rejects the graph.
std::vector<ConvPlan> conv_plans(const ConvArguments& arguments,
                                 const ConvTarget& target,
                                 std::size_t wanted);

}  // namespace halfstep::backend::cuda::real
