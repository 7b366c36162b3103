#pragma once
// Unscaling in float16: where a graph takes the loss scale off its gradients with an op that
// computes in float16, so that gradients which the scale had saved from underflow are lost after
// all.

#include <optional>
#include <string_view>
#include <vector>

#include "config/run_spec.h"
#include "graph/graph.h"

namespace halfstep::precision {

/// A Mul by 1/scale, or a RealDiv or Div by the scale, whose result is float16.
struct Float16Unscaling {
  int node = -1;
  bool divides = false;         ///< by the scale, rather than multiplies by its reciprocal
  std::optional<double> scale;  ///< where the graph has it as a constant
};

/// Every such op, in graph order. A value is a scale when it multiplies something that the op
/// depends on and the op divides by it: the same variable, placeholder or constant, seen through
/// casts, reads and identities. Constants below 16 are left out: they are the arithmetic of layers,
/// such as the 2 and 0.5 of a GELU.
std::vector<Float16Unscaling> float16_unscalings(const graph::Graph& graph);

/// The smallest gradients that unscaling gives, other than 0.
struct SmallestGradient {
  /// In float16, where half of it and less becomes 0; infinite when every gradient becomes 0.
  double in_float16 = 0;
  double full_digits = 0;  ///< in float16, from here on with all of its digits
  double in_float32 = 0;   ///< from the same scaled gradient, which is a float16
};

/// For a loss scale; 2^-24 is float16's smallest number, 2^-14 its smallest normal one. All is lost
/// where 1/scale rounds to 0 in float16, or the divisor `scale` to infinity.
SmallestGradient smallest_gradient(double scale, bool divides);

/// W211 when the graph unscales in float16: names the first op and the smallest gradient that it
/// gives. `scale`: the loss scale where the graph has it in a variable, or nothing; `remedy` ends
/// the message.
std::optional<config::Warning> unscaling_warning(const graph::Graph& graph,
                                                 std::optional<double> scale,
                                                 std::string_view remedy);

}  // namespace halfstep::precision
