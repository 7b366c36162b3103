#pragma once
// FLOPs and bytes of one launch of a node, for achieved rates (`bench --profile`) and the roofline
// prediction (`explain --arch sm_90`).
//
// FLOPs are those of the op's formula: recomputation and padding in a kernel do not count. Bytes
// are a lower bound of memory traffic: operands that exceed the caches are read more than once.

#include "graph/graph.h"

namespace halfstep::analysis {

/// The work of a launch, for the batch size of the graph's shapes.
struct NodeWork {
  /// Two per multiply-add of matmuls, convolutions, attention and recurrent layers; 0 for other
  /// ops.
  double flops = 0;
  /// Bytes read and written, each tensor once; a variable that the node changes counts twice, and a
  /// lookup reads as many rows as it writes.
  double bytes = 0;
};

/// Bytes of a value, variables aside.
double bytes_of(const graph::TensorType& type);

/// The work of `node`, a node of `graph`, in one step. `graph` is executable: the shapes of an
/// imported graph are unknown.
NodeWork node_work(const graph::Graph& graph, const graph::Node& node);

}  // namespace halfstep::analysis
