#pragma once
// The type attribute of each port of a node: the link between the dtypes of values and attributes.

#include <optional>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace halfstep::graph {

/// The source of a port's dtype: a type attribute, one element of a list(type) attribute, or a
/// fixed dtype in the op's signature.
struct PortType {
  std::string_view attr;       ///< empty when fixed; lives as long as the op table
  int index = -1;              ///< element of a list attribute, else -1
  std::optional<DType> fixed;  ///< hard-wired dtype

  bool operator==(const PortType&) const = default;
};

/// One entry per port. As in TensorFlow a missing count attribute means one port, a missing list
/// attribute none. Optional inputs are counted.
std::vector<PortType> input_port_types(const OpDef& op, const Attrs& attrs);
std::vector<PortType> output_port_types(const OpDef& op, const Attrs& attrs);

/// The dtype that `attrs` gives a port, or nothing when the attribute is missing.
std::optional<DType> dtype_of(const PortType& port, const Attrs& attrs);

/// The dtype of every input port of a node, from its attributes: as many as the op's signature
/// asks for. Nothing when a type or count attribute is missing.
std::optional<std::vector<DType>> input_dtypes(const OpDef& op, const Attrs& attrs);
std::optional<std::vector<DType>> output_dtypes(const OpDef& op, const Attrs& attrs);

/// Whether a node may have `given` data inputs where its op declares `wanted` ports.
bool fits_inputs(const OpDef& op, std::size_t wanted, std::size_t given);

}  // namespace halfstep::graph
