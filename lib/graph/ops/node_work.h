#pragma once
// The work of one launch of a node, by which its rate is computed and its time predicted: `bench
// --profile`, `explain --arch sm_90`.
//
// Operations are those of the op's formula: a kernel that computes something again, or pads an
// operand, does more. Bytes are the least that a launch moves through memory: operands that do not
// fit a cache are read more than once.

#include "graph/graph.h"

namespace halfstep::graph {

/// The work of a launch in one step, of the batch of the graph's shapes.
struct NodeWork {
  /// Two per multiply-add of matmuls, convolutions, attention and recurrent layers; 0 for other
  /// ops.
  double flops = 0;
  /// Bytes read and written, each tensor once; a variable that the node changes counts twice, and a
  /// lookup reads as many rows as it writes.
  double bytes = 0;
};

/// The work of `node`, a node of `graph`, in one step.
NodeWork node_work(const Graph& graph, const Node& node);

}  // namespace halfstep::graph
