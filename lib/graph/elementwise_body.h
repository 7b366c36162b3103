#pragma once
// The body of a FusedElementwise, a value of its attribute `body`; shared by its shape rule, the
// pass that builds it and its kernels.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace halfstep::graph {

inline constexpr std::size_t k_max_elementwise_inputs = 8;
inline constexpr std::size_t k_max_elementwise_steps = 12;

/// One op of a body. Operands are indices: the inputs of the node come first, then the results of
/// the preceding ops.
struct ElementwiseStep {
  std::string op;
  std::vector<int> operands;
  DType dtype = DType::float32;  ///< of the result, which is rounded to it
  double alpha = 0;              ///< the attribute of leaky ops
  std::int64_t seed = 0;         ///< of random numbers, as are `stream` and `first`
  std::int64_t stream = 0;
  std::int64_t first = 0;

  bool operator==(const ElementwiseStep&) const = default;
};

struct ElementwiseBody {
  std::size_t inputs = 0;  ///< of the node, each of which is an operand
  std::vector<ElementwiseStep> steps{};
  std::vector<int> results{};  ///< indices of the ops whose results are the node's outputs

  bool operator==(const ElementwiseBody&) const = default;
};

/// The text form: "Cast x0 : float ; Mul t0 x1 : float -> t1"; elementwise_body() parses it.
std::string to_string(const ElementwiseBody& body);
/// Errors: ShapeError for malformed text and for operands that do not exist.
ElementwiseBody elementwise_body(std::string_view text);

}  // namespace halfstep::graph
