#pragma once
// Every optimizer's step, as the ops take it and as a formula in double.

#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"

namespace halfstep::testing {

/// One element of a variable and its slots, in the order of the op's handles.
struct UpdateElement {
  double w = 0, a = 0, b = 0, c = 0;
};

/// The hyperparameters of an update, as in the graph.
struct UpdateNumbers {
  double lr = 0.0625, rho = 0.875, momentum = 0.75, epsilon = 0x1p-10;
  double beta1 = 0.875, beta2 = 0.96875, decay = 0.125;
};

struct UpdateCase {
  std::string name;
  std::string op;
  int slots;
  /// Scalar inputs before and after the gradient, given the number of the step from 1.
  std::function<std::vector<double>(const UpdateNumbers&, int)> before, after;
  /// The new element by the formula of the op, written in double.
  std::function<UpdateElement(UpdateElement, double, const UpdateNumbers&, int)> step;
  graph::Attrs attrs{};
};

/// Each rule without and with a decay of the weight.
std::vector<UpdateCase> update_cases();

/// Start values such that every square root is of something positive: of the variable, handle 0,
/// and of its slots.
Tensor initial_state(DType dtype, const Shape& shape, const UpdateCase& c, int handle);

}  // namespace halfstep::testing
