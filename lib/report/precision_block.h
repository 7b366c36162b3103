#pragma once
// The `precision` block: requested and effective precision, and every op's dtypes with the reason.

#include <string>
#include <vector>

#include "plan/plan.h"
#include "report/blocks.h"
#include "report/kernel_arithmetic.h"
#include "train/session.h"

namespace halfstep::report {

/// Notes the kernel that is used for the op on a processor, the algorithm that its library chose,
/// and the facts that follow from them.
void run_by(OpInfo& row,
            std::string kernel,
            const std::optional<backend::Algorithm>& algorithm,
            const Processor& processor);

/// "float16", "bfloat16".
bool is_half_name(std::string_view dtype);

/// The dtypes of a node of a graph, without a kernel.
OpInfo op_info(const graph::Graph& graph, const graph::Node& node);

/// One entry per launch of one of the session's plans, in order.
std::vector<OpInfo> op_rows(const train::Session& session, const plan::Plan& plan);

/// Floating-point operations of one run of the plan's matmuls and convolutions.
double flops(const plan::Plan& plan);

/// `plan` is one of the session's; its ops are listed.
Precision precision_block(const train::Session& session, const plan::Plan& plan);
/// The block of a session that trains, with the ops of a full batch.
Precision precision_block(train::Session& session);

}  // namespace halfstep::report
