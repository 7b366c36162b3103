#pragma once
// Runs op cases on single kernels, to compare them with the reference.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "support/op_cases.h"

namespace halfstep::testing {

/// The reference with `kernel` in front of it.
class OneKernel {
 public:
  OneKernel(const backend::Kernel& kernel, const backend::Capabilities& capabilities);

  bool takes(const BuiltCase& built) const;
  /// Outputs, then the variables by name.
  std::vector<Tensor> run(BuiltCase& built) const;

 private:
  std::vector<backend::Kernel> kernels_;
  backend::Backend backend_;
};

/// Outputs and variables of a case on any backend.
std::vector<Tensor> run(BuiltCase& built, const backend::Backend& backend);

/// Cases for the kernels that cut their work into runs, blocks and parts: large enough to have
/// several of each, with ends that do not fit.
std::vector<OpCase> large_cases();
struct ConvShape {
  std::string_view name;  ///< "depthwise ..." is a depthwise one
  Shape x, filter;
  std::vector<std::int64_t> strides{1, 1}, dilations{1, 1};
  std::string_view padding = "SAME";
};
/// Convolutions with a bias, without one where depthwise, and their gradients.
std::vector<OpCase> conv_cases(std::span<const ConvShape> convs);
/// Convolutions, plain, grouped, depthwise, strided, dilated and padded, with their gradients.
std::vector<OpCase> more_conv_cases();
/// Pooling with its gradients; distinct values, so that the largest is one cell.
std::vector<OpCase> more_pool_cases();
/// Batch normalization, training and not, with its gradients.
std::vector<OpCase> more_norm_cases();
/// Every optimizer step.
std::vector<OpCase> more_update_cases();
/// All of the above and the shared ones.
std::vector<OpCase> all_kernel_cases();

/// Compares `kernel` with the reference in float64 (in the same dtype where there is none) on every
/// case it takes, in every dtype; returns how many cases that were.
int check_against_reference(const backend::Kernel& kernel,
                            const backend::Capabilities& capabilities,
                            const std::vector<OpCase>& cases);

/// Runs the case with the result in the memory of each input that `kernel` allows, also where that
/// input occurs a second time, and compares the bits with those of a result in memory of its own.
void check_in_place(const backend::Kernel& kernel,
                    const backend::Capabilities& capabilities,
                    BuiltCase& built);

}  // namespace halfstep::testing
