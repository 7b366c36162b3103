#pragma once
// Short names and reasons for the table of an explanation.

#include <string>

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

}  // namespace halfstep::report
