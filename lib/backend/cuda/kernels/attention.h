#pragma once
// FusedAttention and FusedAttentionGrad (graph/ops/attention.cc), a launch each. A block computes
// tiles of 32 x 32 scores (16 x 16 for heads of more than 64 channels) in shared memory, one after
// another. Scores, weights, their gradients and all sums are float32, multiplied by FMA.
//
// Dtypes: `dtype` is float16, bfloat16 or float32, log_sum_exp float32. A head has at most
// k_max_channels. Outputs alias no input. Sums run over tiles in their order, within one channel
// by channel and step by step.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "graph/ops/attention.h"

namespace halfstep::backend::cuda::kernels {

/// The properties and inputs that both passes have.
struct AttentionInputs {
  static constexpr std::int64_t k_max_channels = 128;

  DType dtype{};
  graph::ops::AttentionGeometry geometry;
  graph::ops::AttentionDropout dropout;
  const void* query = nullptr;
  const void* key = nullptr;
  const void* value = nullptr;
  const std::int64_t* ordinal = nullptr;  ///< of the step; read for dropout alone
  const bool* taken = nullptr;            ///< [batch, keys]; nullptr: all are
};

struct AttentionParams {
  AttentionInputs inputs;
  void* result = nullptr;
  float* log_sum_exp = nullptr;
};
void attention(Stream stream, const AttentionParams& params);

/// Weights are computed again from log_sum_exp: by a block for each tile of keys, which takes all
/// queries, and where there is more than one tile by a block for each tile of queries too.
struct AttentionGradParams {
  AttentionInputs inputs;
  const void* dy = nullptr;
  const void* result = nullptr;
  const float* log_sum_exp = nullptr;
  void* dquery = nullptr;
  void* dkey = nullptr;
  void* dvalue = nullptr;
};
void attention_grad(Stream stream, const AttentionGradParams& params);

}  // namespace halfstep::backend::cuda::kernels
