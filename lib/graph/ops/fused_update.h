#pragma once
// Input indices of FusedUpdate, GroupedUpdate and PackedMatMulUpdate, shared by their shape rules,
// their kernels and the passes that build them.

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace halfstep::graph::ops {

/// Variables of one MovingAverages.
inline constexpr std::size_t k_max_averages = 32;

/// Input indices of an optimizer op; `inputs` counts them without `ok`.
struct UpdatePorts {
  std::size_t resources = 0;  ///< handles, which come first: the variable and its slots
  std::size_t gradient = 0;
  std::size_t inputs = 0;
};

/// The indices of an op like ResourceApplyAdam. Errors: InternalError for an op that is no update.
UpdatePorts update_ports(const OpDef& op);

/// Sets the attributes that a rule and the updates made from it share.
void copy_options(const Attrs& from, Attrs& to);

/// The inputs of a FusedUpdate: those of its rule, `unscale`, `packed` operands, `ok`; and of a
/// PackedMatMulUpdate, with operand a as the gradient and operand b at `packed_end`.
struct FusedUpdatePorts {
  UpdatePorts rule;
  std::size_t unscale = 0;
  std::size_t packed_begin = 0, packed_end = 0;
  bool guarded = false;  ///< the last input is `ok`
};
FusedUpdatePorts fused_update_ports(const Node& node);

/// The inputs of a GroupedUpdate: the handles of each tensor, the gradient of each, the copies of
/// those that have one, the rule's other inputs, `decay`, `unscale`, `ok`.
struct GroupedUpdatePorts {
  UpdatePorts rule;
  std::size_t tensors = 0;
  std::size_t gradients = 0;
  std::vector<int> copies = {};  ///< per tensor: the input that is its copy, or -1
  std::size_t scalars = 0;
  std::size_t end = 0;  ///< number of inputs
  bool unscaled = false, guarded = false;
  std::vector<std::int64_t> decayed = {};  ///< 0 or 1 per tensor; empty: no input `decay`

  /// The input of the handle `i` of a tensor: the variable, then its slots.
  std::size_t handle(std::size_t tensor, std::size_t i) const {
    return tensor * rule.resources + i;
  }
  std::size_t unscale() const { return end - (guarded ? 2 : 1); }
  std::size_t decay() const { return unscale() - (unscaled ? 1 : 0); }
};
GroupedUpdatePorts grouped_update_ports(const Attrs& attrs);

/// Whether `padded` is `shape`, possibly with padded rows: matmuls need rows of gradients and
/// copies at multiples of 16 bytes. A GroupedUpdate reads and writes the first elements of each
/// row.
bool pads_rows(const Shape& padded, const Shape& shape);

/// The type of a handle's variable.
TensorType variable_type(const Node& handle);

}  // namespace halfstep::graph::ops
