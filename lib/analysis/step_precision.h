#pragma once
// The precision of a training step: the dtypes and the kernel of every op with the reason, and the
// requested and the effective precision of a plan.

#include <optional>
#include <string>
#include <vector>

#include "analysis/processor.h"
#include "core/fields.h"
#include "plan/plan.h"
#include "train/session.h"

namespace halfstep::analysis {

/// The dtypes and the kernel of one launch.
struct OpInfo {
  std::string name, type, layer, phase;
  std::string in_dtype;
  std::string compute_dtype;
  std::string accumulate_dtype;  ///< "" where nothing is summed, or it is not known
  std::string out_dtype;
  std::string reason;
  std::string kernel;
  double flops = 0;
  std::optional<bool> tensor_core;  ///< nothing if unknown
  std::string algorithm;            ///< "" where no library chose one

  void fields(Fields& f) { describe(f, false); }
  /// `may_have_no_kernel`: for an explanation.
  void describe(Fields& f, bool may_have_no_kernel);
};

struct Float16Gemm {
  std::string requested, effective;
  void fields(Fields& f);
};

/// Requested and effective precision.
struct PrecisionHead {
  std::string requested, effective, compute_dtype, variable_dtype, accumulate_dtype, float32_math;
  std::string grad_dtype;
  std::optional<Float16Gemm> float16_gemm;
  plan::RewriteSummary rewrite;
  void fields(Fields& f);

  /// The requested precision: "rewrite:bfloat16" for a rewrite, the policy otherwise.
  std::string policy_name() const;
};
struct Precision : PrecisionHead {
  std::vector<OpInfo> ops;
  void fields(Fields& f);
};
/// The same with optional ops.
struct PrecisionSummary : PrecisionHead {
  std::optional<std::vector<OpInfo>> ops;
  void fields(Fields& f);
};

/// Notes the kernel that is used for the op on a processor, the algorithm that its library chose,
/// and the facts that follow from them.
void run_by(OpInfo& row,
            std::string kernel,
            const std::optional<backend::Algorithm>& algorithm,
            const Processor& processor);

/// The dtypes of a node of a graph, without a kernel.
OpInfo op_info(const graph::Graph& graph, const graph::Node& node);

/// One entry per launch of one of the session's plans, in order.
std::vector<OpInfo> op_rows(const train::Session& session, const plan::Plan& plan);

/// Floating-point operations of one run of the plan's matmuls and convolutions.
double flops(const plan::Plan& plan);

/// The precision of one of the session's plans, with its ops.
Precision precision_of(const train::Session& session, const plan::Plan& plan);
/// That of a session that trains, with the ops of a full batch.
Precision precision_of(train::Session& session);

}  // namespace halfstep::analysis
