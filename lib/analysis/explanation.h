#pragma once
// The explanation of a training step: every op with its dtypes and their reasons, the casts, and
// hints. Ops are those that the precision passes process, before fusion.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/gpu_prediction.h"
#include "analysis/rank_messages.h"
#include "analysis/step_precision.h"

namespace halfstep::analysis {

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

struct Explanation {
  std::string policy;  ///< or "rewrite to bfloat16"
  std::string device;  ///< "cpu"
  std::string arch;    ///< "avx512_bf16", "sm_70": present or chosen by --arch
  std::int64_t batch = 0;
  std::vector<ExplainedOp> ops;
  plan::RewriteSummary rewrite;
  std::int64_t casts = 0;
  double cast_bytes = 0;                         ///< read and written by casts per step
  double flops = 0;                              ///< of matmuls and convolutions, a step
  double bytes = 0;                              ///< written by all ops, per step
  double half_flops_share = 0;                   ///< of `flops`
  double half_bytes_share = 0;                   ///< of `bytes`
  std::optional<StepPrediction> predicted_step;  ///< on a GPU, present or chosen by --arch
  std::optional<RankMessages> rank_messages;     ///< of several ranks

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
std::vector<config::Warning> hints(train::Session& session, const Explanation& explanation);

/// The ops that two explanations of one model have in common, casts aside.
struct Comparison {
  /// Those whose dtypes differ, in the order of the second explanation.
  std::vector<std::pair<const ExplainedOp*, const ExplainedOp*>> differing;
  std::size_t equal = 0;  ///< the number of the others
};
Comparison compare(const Explanation& a, const Explanation& b);

/// "16.8 MB", "36.9 kB", of bytes.
std::string megabytes(double bytes);

/// "f32", "bf16", "u8"; "-" for "".
std::string short_dtype(std::string_view dtype);

/// "Conv2D", "cast kernel": the op without its layer.
std::string short_name(const ExplainedOp& op);

/// The layer, or for ops without one: "input", "loss", "optimizer".
std::string group_name(const ExplainedOp& op);

/// The reason for the op's dtype, in a few words.
std::string short_reason(const Explanation& e, const ExplainedOp& op);

/// The kernel, with the GPU's matrix unit it uses, or the op that it is fused into.
std::string short_kernel(const Explanation& e, const ExplainedOp& op);

}  // namespace halfstep::analysis
