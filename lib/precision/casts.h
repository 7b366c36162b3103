#pragma once
// Placement of casts: one per output port where paint changes, shared by all consumers that need
// it.

#include <string>
#include <vector>

#include "precision/vertices.h"

namespace halfstep::precision {

/// An output of a node, or (node >= size of the graph) of the planned cast number node - size.
using CastSource = graph::Value;

struct PlannedCast {
  std::string name;
  CastSource source;
  bool to_half = false;  ///< to the target, else to float32
};

struct CastPlan {
  std::vector<int> retyped;                     ///< vertices that change to the target
  std::vector<PlannedCast> casts;               ///< in the order TensorFlow inserts them
  std::vector<std::vector<CastSource>> inputs;  ///< new data inputs of every node
  /// Casts to the target, except those of constants and variables, as TensorFlow counts them.
  int counted_casts = 0;
};

/// Visits the nodes in order; each output whose readers differ in paint gets a cast named
/// `<node>-<port>-CastToFp16|CastToBf16|CastToFp32-<k>-AutoMixedPrecision`. With `emulate` nothing
/// is retyped: every input of an allowed vertex is cast to float32, every output to the target.
/// Errors: RewriteFailure when a hard-wired float32 was forced.
CastPlan plan_casts(const graph::Graph& graph,
                    const TypeGraph& types,
                    const std::vector<bool>& allow,
                    DType target,
                    bool emulate);

}  // namespace halfstep::precision
