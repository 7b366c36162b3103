#pragma once
// A trial of a library's convolution: operands of small integers, for which the library computes
// the whole result and the host a few elements of it, in double.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/vendor/conv_arguments.h"

namespace halfstep::backend::cuda {

enum class ConvOperand : std::uint8_t { x, filter, y, bias };

/// The values of an operand, repeated to its size: integers from -2 to 2, which all dtypes
/// represent and whose sums are exact in float32. Their number is prime, so that no row or image
/// repeats another.
std::vector<float> trial_values(ConvOperand operand);

/// Checks a convolution of operands of trial_values(). `element` returns an element of the result
/// by its position in memory. Nothing where the elements that are compared are right: 6 to 32 of
/// them, the first and the last among them, to a tenth of the standard deviation of such sums,
/// since an engine may transform its operands in 16 bits (Winograd) or round sums. Else the first
/// that is not: "element 17 is 3 instead of -12".
std::optional<std::string> conv_fault(const ConvArguments& arguments,
                                      const std::function<double(std::int64_t)>& element);

}  // namespace halfstep::backend::cuda
