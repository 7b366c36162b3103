#pragma once
// The steps of RNN and RNNGrad (graph/ops/recurrent.cc) between their matmuls: bias, gates, state,
// mask and stored results of all samples and units, a thread for each. Formulas are computed in
// float32; h and the gradients of gates are rounded to `dtype` once a step.
//
// Sequences are [batch, steps, units], states [batch, units]. Elements are of `dtype` where a type
// is not given: float16, bfloat16 or float32. Matmuls read their state from `operand`, which is
// dense and aligned, whatever the number of units is.

#include <cstdint>
#include <string_view>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "graph/ops/recurrent.h"

namespace halfstep::backend::cuda::kernels {

/// An activation, by the name of its op.
enum class Activation : std::uint8_t { identity, relu, sigmoid, tanh };
/// Errors: LaunchError for another op.
Activation activation_of(std::string_view op);

/// A step of either pass: the properties of the node and the tensors that both read.
struct RnnStep {
  DType dtype{};
  graph::ops::RnnGeometry geometry;
  Activation activation{}, recurrent_activation{};
  std::int64_t number = 0;  ///< in the order in which the steps are taken
  std::int64_t first = 0;   ///< the sample of the first row of operands and sums
  const void* initial_h = nullptr;
  const float* initial_c = nullptr;
  const void* mask = nullptr;   ///< state; nullptr: none
  const bool* taken = nullptr;  ///< [batch, steps]; nullptr: all steps are
  // Written by RNN, read by RNNGrad.
  void* output = nullptr;    ///< sequence
  void* gates = nullptr;     ///< [batch, steps, saved * units]
  float* carries = nullptr;  ///< sequence
};

struct RnnParams {
  RnnStep step;
  const void* projections = nullptr;  ///< [batch, steps, columns]
  const void* bias = nullptr;         ///< [columns]
  float* last_c = nullptr;            ///< state: c after the step
  void* states = nullptr;             ///< sequence
  const float* sums = nullptr;        ///< [batch, state_columns]: the operand times R of the gates
  const float* candidate = nullptr;   ///< state, gru_reset_before: the operand times R_h
  void* operand = nullptr;            ///< state
};
/// gru_reset_before, between the two matmuls of a step: operand = s(a) times the masked h.
void rnn_reset(Stream stream, const RnnParams& params);
/// After the last matmul of a step. `operand` becomes that of the next step: h times the mask.
void rnn_gates(Stream stream, const RnnParams& params);

struct RnnGradParams {
  RnnStep step;
  const void* dy = nullptr;           ///< sequence
  const float* dlast_c = nullptr;     ///< state
  void* dprojections = nullptr;       ///< [batch, steps, columns]
  void* drecurrent = nullptr;         ///< of a gru, like dprojections
  void* dinitial_h = nullptr;         ///< state
  float* dinitial_c = nullptr;        ///< state: the gradient of c before the step
  float* dh = nullptr;                ///< state: the gradient of the matmuls' operand
  float* direct = nullptr;            ///< state: that of h by other ways; nullptr: there are none
  void* operand = nullptr;            ///< [batch, state_columns]: gradients of the sums
  void* candidate_operand = nullptr;  ///< state, gru_reset_before: that of the candidate's sums
};
/// Before the matmuls of a step, the last step first.
void rnn_grad_gates(Stream stream, const RnnGradParams& params);
/// gru_reset_before, between the two matmuls of a step. `dh` holds the gradient of the candidate's
/// operand, and then the part of it to which the second matmul adds.
void rnn_grad_reset(Stream stream, const RnnGradParams& params);
/// After the matmuls of step 0: dinitial_h.
void rnn_grad_finish(Stream stream, const RnnGradParams& params);

/// All steps in one launch: each block has one sample or four, whose state stays in shared memory,
/// and multiplies it by the kernel [units, columns] itself, by FMA in float32.
inline constexpr int k_max_units = 256, k_max_columns = 1024, k_max_samples = 4;

inline std::int64_t kernel_bytes(const graph::ops::RnnGeometry& g, DType dtype) {
  return g.units * g.columns() * static_cast<std::int64_t>(size_bytes(dtype));
}

/// Samples of a block: one where the multiprocessors of a large GPU have a block each, or more
/// where that many blocks would read a large kernel from the second-level cache at each step.
inline int samples_of_block(const graph::ops::RnnGeometry& g, DType dtype) {
  constexpr std::int64_t k_blocks = 128, k_first_level = 128 << 10, k_step_bytes = 8 << 20;
  const std::int64_t bytes = kernel_bytes(g, dtype);
  const std::int64_t blocks = bytes <= k_first_level ? k_blocks : k_step_bytes / bytes;
  return g.batch <= blocks ? 1 : k_max_samples;
}

/// Whether rnn_steps() and rnn_grad_steps() have code for the node and take less time than matmuls
/// of a library. On an H100 a step of lstm_rows (128 units) takes in milliseconds, by one launch
/// and by two for each step of the sequence: in float16 0.259 and 0.337 with 16 samples, 0.272 and
/// 0.369 with 128, 0.398 and 0.377 with 256; in float32 0.304 and 1.82 with 16, 0.489 and 0.574
/// with 128, 0.525 and 0.644 with 256.
inline bool takes_one_launch(const graph::ops::RnnGeometry& g, DType dtype) {
  constexpr std::int64_t k_max_bytes = 256 << 10;
  const std::int64_t most = is_half(dtype) ? 1 << 23 : 1 << 24;  // multiply-adds of a step
  const bool has_code = g.units % 8 == 0 && g.units <= k_max_units && g.columns() <= k_max_columns;
  return has_code && kernel_bytes(g, dtype) <= k_max_bytes &&
         g.batch * g.units * g.columns() <= most;
}

/// Sets sums, candidate and operand itself. `kernel` is aligned to 4 bytes.
void rnn_steps(Stream stream, const RnnParams& params, const void* kernel);
/// Sets dh and both operands itself. `transposed`: the kernel as [columns, units].
void rnn_grad_steps(Stream stream, const RnnGradParams& params, const void* transposed);

}  // namespace halfstep::backend::cuda::kernels
