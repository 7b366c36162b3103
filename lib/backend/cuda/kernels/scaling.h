#pragma once
// The finite check, norms of gradients, the loss-scale update and the learning rate; formulas in
// graph/ops/scaling.h and at the ops' definitions (graph/ops/scaling.cc).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "graph/ops/scaling.h"

namespace halfstep::backend::cuda::kernels {

/// Tensors of one launch of all_finite() and squared_norms().
inline constexpr std::size_t k_max_tensors = 96;

struct CheckedTensor {
  DType dtype{};
  const void* x = nullptr;
  std::int64_t elements = 0;
};

/// *ok = every element of every floating tensor is finite; with `unscale`, after conversion to
/// float32 and multiplication by it.
struct AllFiniteParams {
  std::span<const CheckedTensor> tensors;  ///< host memory that holds device addresses
  const float* unscale = nullptr;
  bool reciprocal = false;  ///< of `unscale`
  bool* ok = nullptr;
  Tickets tickets = {};
};
void all_finite(Stream stream, const AllFiniteParams& params);

struct SquaredTensor : CheckedTensor {
  float* norm = nullptr;
};

/// *norm = the sum of the squares of a tensor's elements, in float32; with `unscale` after
/// conversion to float32 and multiplication by it.
struct SquaredNormsParams {
  std::span<const SquaredTensor> tensors;  ///< host memory that holds device addresses
  const float* unscale = nullptr;
  void* workspace = nullptr;  ///< of squared_norms_workspace() bytes
  Tickets tickets = {};
};
std::size_t squared_norms_workspace(std::span<const SquaredTensor> tensors);
void squared_norms(Stream stream, const SquaredNormsParams& params);

struct LossScaleParams {
  graph::ops::LossScaleRule rule;
  float* scale = nullptr;
  std::int32_t* good_steps = nullptr;
  std::int32_t* hysteresis_left = nullptr;
  const bool* ok = nullptr;
  std::int64_t* counter = nullptr;  ///< += 1 where *ok, or always with counts_all; may be null
};
void update_loss_scale(Stream stream, const LossScaleParams& params);

/// *rate of step *step, rounded once.
struct LearningRateParams {
  static constexpr std::size_t k_max_pieces = 64;

  graph::ops::Schedule schedule;
  const std::int64_t* step = nullptr;
  float* rate = nullptr;
  std::size_t pieces = 0;  ///< of piecewise_constant: that many values, one boundary fewer
  std::array<std::int64_t, k_max_pieces> boundaries{};
  std::array<double, k_max_pieces> values{};
};
void learning_rate(Stream stream, const LearningRateParams& params);

}  // namespace halfstep::backend::cuda::kernels
