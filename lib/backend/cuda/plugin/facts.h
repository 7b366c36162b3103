#pragma once
// A node rebuilt from the C boundary with the types of lib/graph.

#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/boundary.h"
#include "graph/attr.h"
#include "graph/op_def.h"

namespace halfstep::backend::cuda::plugin {

struct Facts {
  explicit Facts(const boundary::Node& node);

  /// The integers of input `i`, whose kernel requires a constant. Errors: InternalError without
  /// them.
  const std::vector<std::int64_t>& constant(std::size_t i) const;
  const graph::TensorType& input(std::size_t i) const { return inputs.at(i); }
  const graph::TensorType& output(std::size_t i = 0) const { return outputs.at(i); }

  std::string op;
  std::string name;
  std::vector<graph::TensorType> inputs;
  std::vector<std::optional<std::vector<std::int64_t>>> constants;
  std::vector<graph::TensorType> outputs;
  graph::Attrs attrs;
};

}  // namespace halfstep::backend::cuda::plugin
