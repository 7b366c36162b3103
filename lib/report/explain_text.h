#pragma once
// An explanation as text: short names and reasons, a table for a terminal, a graph.

#include <string>
#include <string_view>

#include "report/explain_report.h"

namespace halfstep::report {

/// "f32", "bf16", "u8"; "-" for "".
std::string short_dtype(std::string_view dtype);

/// "Conv2D", "cast kernel": the op without its layer.
std::string short_name(const ExplainedOp& op);

/// The layer, or for ops without one: "input", "loss", "optimizer".
std::string group_name(const ExplainedOp& op);

/// "dense_2's MatMul", "dense_2's bias gradient (BiasAddGrad)", "the loss (Mean)".
std::string describe(const ExplainedOp& op);

/// The reason for the op's dtype, in a few words.
std::string short_reason(const Explanation& e, const ExplainedOp& op);

/// The kernel, with the GPU's matrix unit it uses, or the op that it is fused into.
std::string short_kernel(const Explanation& e, const ExplainedOp& op);

/// At most 100 columns wide: ops of the forward pass and the loss under their layers, with equal
/// consecutive ops on one line, then the totals and the hints. `verbose`: every op of the step on a
/// separate line.
std::string to_table(const Explanation& explanation, bool verbose = false);

/// The differences between two explanations of one model, layer by layer, then the totals of both.
std::string diff_table(const Explanation& a,
                       const Explanation& b,
                       const std::string& name_a,
                       const std::string& name_b);

/// Graphviz: a box per op, green in 16 bits, red where a denied op keeps it in float32, layers as
/// clusters, casts as small ellipses; an edge per value. `verbose`: includes the backward pass and
/// the updates.
std::string to_dot(const Explanation& explanation, bool verbose = false);

}  // namespace halfstep::report
