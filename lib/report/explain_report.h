#pragma once
// `explain` of a config: every op of the training step with its dtypes and their reasons, the
// casts, and hints. Ops are those that the precision passes process, before fusion.

#include <array>
#include <string>
#include <vector>

#include "report/precision_block.h"
#include "report/rank_messages.h"
#include "report/step_prediction.h"

namespace halfstep::report {

/// The cost model's prediction for one kernel.
struct Prediction {
  std::string kernel;
  double seconds = 0;  ///< of one thread for backend::k_nominal_batch samples
  void fields(Fields& f);
};

struct ExplainedOp {
  OpInfo info;             ///< `kernel` is "" where no row takes the op
  std::string fused_into;  ///< the op whose launch computes this one too, "" when it has its own
  std::string list;        ///< of the rewrite: allow, infer, deny, clear; "" when on none
  std::string step;        ///< of the rewrite that decided; "policy" without a rewrite
  std::string cause;       ///< the op that decided or prevents it, "" without one
  bool cast = false;       ///< between floating dtypes
  double cast_bytes = 0;   ///< read and written, when it is a cast
  double bytes = 0;        ///< of floating outputs
  double half_bytes = 0;   ///< of 16-bit outputs
  std::vector<int> reads;  ///< indices of the ops whose values it uses
  /// The cost model's predictions for the kernels of a 16-bit matmul or convolution on a CPU,
  /// the fastest first; empty for other ops.
  std::vector<Prediction> predicted = {};

  void fields(Fields& f);
};

/// The report of kind `explain`, with the values that only tables and graphs show.
struct Explanation {
  static constexpr std::string_view k_kind = "explain", k_doc = "which dtype each op gets, and why";
  std::string policy;  ///< or "rewrite to bfloat16"
  std::string device;  ///< "cpu"
  std::string arch;    ///< "avx512_bf16", "sm_70": present or pretended
  std::int64_t batch = 0;
  std::vector<ExplainedOp> ops;
  plan::RewriteSummary rewrite;
  std::int64_t casts = 0;
  double cast_bytes = 0;                         ///< read and written by casts per step
  double flops = 0;                              ///< of matmuls and convolutions, a step
  double bytes = 0;                              ///< written by all ops, per step
  double half_flops_share = 0;                   ///< of `flops`
  double half_bytes_share = 0;                   ///< of `bytes`
  std::optional<StepPrediction> predicted_step;  ///< on a GPU, present or pretended
  std::optional<RankMessages> rank_messages;     ///< of several ranks
  std::vector<WarningBlock> hints;

  void fields(Fields& f);
  const ExplainedOp* find(std::string_view name) const;
};

/// Explains the training step of a session. `gpu`: explain for this GPU ("sm_70"), "" for the
/// session's own backend.
Explanation explain(train::Session& session, const std::string& gpu = "");

/// Changes by which a user gains more from 16 bits, or loses less:
/// W203 extents that the matrix unit pads; W204 too little work to gain; W205 a denied op that
/// keeps others in float32, with the list edit that frees them, tried out; W206 no unit for the
/// dtype; W207 casts that move much; W208 epsilon lost in float16; W209 a GPU that TensorFlow would
/// not rewrite for; W210 a rewrite that found nothing to do. Then the session's own warnings.
/// `explanation` is complete except for its hints.
std::vector<WarningBlock> hints(train::Session& session, const Explanation& explanation);

/// `explain --diff`: an op whose dtypes differ.
struct ExplainedDifference {
  std::string name, type;
  std::array<std::string, 2> compute_dtype, out_dtype, kernel, reason;
  void fields(Fields& f);
};

struct ExplainDiff {
  static constexpr std::string_view k_kind = "explain_diff",
                                    k_doc = "ops that two policies treat differently";
  std::array<std::string, 2> policies;
  std::vector<ExplainedDifference> ops;
  void fields(Fields& f);
};
ExplainDiff explain_diff(const Explanation& a,
                         const Explanation& b,
                         const std::string& name_a,
                         const std::string& name_b);

/// "16.8 MB", "36.9 kB", of bytes.
std::string megabytes(double bytes);
/// Whether ops of this phase are shown by default.
bool is_main_phase(const std::string& phase);

}  // namespace halfstep::report
