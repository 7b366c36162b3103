#pragma once
// What the shape rule of FusedElementwise, the pass that makes it and its kernels agree on.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace halfstep::graph::ops {

inline constexpr std::size_t k_max_elementwise_inputs = 8;
inline constexpr std::size_t k_max_elementwise_steps = 12;

/// One op of a body. Operands are numbered: first the inputs of the node, then the results of the
/// steps before this one.
struct ElementwiseStep {
  std::string op;
  std::vector<int> operands;
  DType dtype = DType::float32;  ///< of the result, which is rounded to it
  double alpha = 0;              ///< the attribute of leaky ops
  std::int64_t seed = 0;         ///< of random numbers, as is `stream`
  std::int64_t stream = 0;

  bool operator==(const ElementwiseStep&) const = default;
};

struct ElementwiseBody {
  std::vector<ElementwiseStep> steps;
  std::vector<int> results;  ///< the steps whose results the node gives, by their place

  bool operator==(const ElementwiseBody&) const = default;
};

/// "Cast x0 : float ; Mul t0 x1 : float -> t1", which elementwise_body() reads back.
std::string to_string(const ElementwiseBody& body, std::size_t inputs);
/// Errors: ShapeError for text that is none, or that names what is not there.
ElementwiseBody elementwise_body(const std::string& text, std::size_t inputs);

/// How many inputs a body's step of this op has; 0 for ops that work otherwise. Further inputs that
/// the op has in a graph are shapes.
std::size_t elementwise_operands(std::string_view op);

}  // namespace halfstep::graph::ops
