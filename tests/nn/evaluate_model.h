#pragma once
// Runs the forward pass of a model on the reference kernels.

#include <functional>
#include <string_view>
#include <vector>

#include "nn/model_text.h"
#include "support/op_cases.h"

namespace halfstep::test {

/// The element at position `i` of an input.
using Fill = std::function<float(std::int64_t i)>;

struct Evaluated {
  std::vector<Tensor> outputs;
  std::vector<Tensor> assigned;  ///< in the order of the record
};

/// Feeds every input with `fill`; weights are drawn, statistics start as they should.
Evaluated evaluate_model(const BuiltModel& built, const Fill& fill, std::int64_t ordinal = 0);

/// The elements of a tensor.
std::vector<double> elements(const Tensor& tensor);

}  // namespace halfstep::test
