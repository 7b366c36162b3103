#pragma once
// Detection of gradient unscaling in float16, where the gradients that loss scaling has kept from
// underflow become zero after all.

#include <optional>
#include <string_view>
#include <vector>

#include "config/run_spec.h"
#include "graph/graph.h"

namespace halfstep::precision {

/// A Mul by 1/scale, or a RealDiv or Div by the scale, whose result is float16 or, where the
/// rewrite emulates float16 on a CPU, rounded to it by a cast.
struct Float16Unscaling {
  int node = -1;
  bool divides = false;         ///< by the scale, rather than multiplies by its reciprocal
  std::optional<double> scale;  ///< where the graph has it as a constant
};

/// All such ops, in graph order. A value is a scale when it multiplies something that the op
/// depends on and the op divides by it: the same variable, placeholder or constant, found through
/// casts, reads and identities. Constants below 16 are ignored: they are the arithmetic of layers,
/// such as the 2 and 0.5 of a GELU.
std::vector<Float16Unscaling> float16_unscalings(const graph::Graph& graph);

/// The smallest nonzero gradients after unscaling.
struct SmallestGradient {
  /// In float16, where half of it and less rounds to 0; infinite when every gradient rounds to 0.
  double in_float16 = 0;
  double full_digits = 0;  ///< in float16, from here on with full precision
  double in_float32 = 0;   ///< in float32, from the same scaled float16 gradient
};

/// For a given loss scale; 2^-24 is float16's smallest number, 2^-14 its smallest normal one. All
/// gradients are lost where 1/scale rounds to 0 in float16, or the divisor `scale` to infinity.
SmallestGradient smallest_gradient(double scale, bool divides);

/// W211 when the graph unscales in float16: names the first op and the smallest gradient that
/// survives. `scale`: the loss scale when it is not a constant of the graph, or nothing; `remedy`
/// ends the message.
std::optional<config::Warning> unscaling_warning(const graph::Graph& graph,
                                                 std::optional<double> scale,
                                                 std::string_view remedy);

}  // namespace halfstep::precision
