#pragma once
// Input indices of FusedUpdate and PackedMatMulUpdate, shared by their shape rules, their kernels
// and the passes that build them.

#include <cstddef>

#include "graph/graph.h"

namespace halfstep::graph::ops {

/// Input indices of an optimizer op; `inputs` counts them without `ok`.
struct UpdatePorts {
  std::size_t resources = 0;  ///< handles, which come first: the variable and its slots
  std::size_t gradient = 0;
  std::size_t inputs = 0;
};

/// The indices of an op like ResourceApplyAdam. Errors: InternalError for an op that is no update.
UpdatePorts update_ports(const OpDef& op);

/// The inputs of a FusedUpdate: those of its rule, `unscale`, `packed` operands, `ok`; and of a
/// PackedMatMulUpdate, with operand a as the gradient and operand b at `packed_end`.
struct FusedUpdatePorts {
  UpdatePorts rule;
  std::size_t unscale = 0;
  std::size_t packed_begin = 0, packed_end = 0;
  bool guarded = false;  ///< the last input is `ok`
};
FusedUpdatePorts fused_update_ports(const Node& node);

/// The type of a handle's variable.
TensorType variable_type(const Node& handle);

}  // namespace halfstep::graph::ops
