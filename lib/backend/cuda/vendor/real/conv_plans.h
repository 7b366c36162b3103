#pragma once
// cuDNN's plans for a convolution, best first. Plans are found and checked for a GPU that is only
// described as well as for one that is there.

#include <cstddef>
#include <string>
#include <vector>

#include "backend/cuda/vendor/conv_arguments.h"
#include "backend/cuda/vendor/real/descriptor.h"

namespace halfstep::backend::cuda::real {

/// For which GPU: the one of `handle`, or, when that is null, the described one.
struct ConvTarget {
  cudnnHandle_t handle = nullptr;
  DescriptorPtr properties;
};

/// What a plan may take besides its tensors. Engines that transpose their operands want a few times
/// their size; there are always others.
inline constexpr std::size_t k_conv_workspace_limit = std::size_t{64} << 20;

// How the tensors of a graph are called when it is run.
inline constexpr std::int64_t k_x_id = 1;
inline constexpr std::int64_t k_filter_id = 2;
inline constexpr std::int64_t k_y_id = 3;
inline constexpr std::int64_t k_bias_id = 4;

struct ConvPlan {
  DescriptorPtr plan;
  std::size_t workspace_bytes = 0;
  std::string description;  ///< "engine 43, tensor cores"
};

/// Up to `wanted` plans in the order of cuDNN's heuristics that take no more than `workspace_limit`
/// bytes, add in float32, are not compiled at run time, and keep what the arguments ask for
/// (strict_float32: no tensor cores, no inputs of fewer bits; deterministic). Empty when there is
/// none. Errors: VendorError when cuDNN does not take the graph.
std::vector<ConvPlan> conv_plans(const ConvArguments& arguments,
                                 const ConvTarget& target,
                                 std::size_t workspace_limit,
                                 std::size_t wanted);

}  // namespace halfstep::backend::cuda::real
