#pragma once
// A node as plain data for the C boundary.

#include <vector>

#include "backend/cuda/boundary.h"
#include "backend/kernel.h"

namespace halfstep::backend::cuda {

/// Owns the data that a boundary::Node points to.
class NodeDescription {
 public:
  explicit NodeDescription(const NodeView& node);
  NodeDescription(const NodeDescription&) = delete;
  NodeDescription& operator=(const NodeDescription&) = delete;

  const boundary::Node& node() const { return node_; }

 private:
  void add(const std::string& name, const graph::AttrValue& value);

  std::vector<boundary::Type> inputs_, outputs_;
  std::vector<std::vector<std::int64_t>> constant_values_;
  std::vector<boundary::Integers> constants_;
  std::vector<std::vector<std::int64_t>> integers_;  ///< per attribute, like the two members below
  std::vector<std::vector<double>> reals_;
  std::vector<boundary::Attr> attrs_;
  boundary::Node node_{};
};

}  // namespace halfstep::backend::cuda
