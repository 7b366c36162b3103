#pragma once
// The finite check, norms of gradients, the loss-scale update and the learning rate; formulas at
// the ops' definitions (graph/ops/scaling.cc).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// Tensors of one launch of all_finite() and squared_norms().
inline constexpr std::size_t k_most_tensors = 96;

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
  float* scale = nullptr;
  std::int32_t* good_steps = nullptr;
  std::int32_t* hysteresis_left = nullptr;
  const bool* ok = nullptr;
  float growth_factor = 2;
  float backoff_factor = 0.5F;
  float min_scale = 1;
  float max_scale = 0;
  std::int64_t growth_steps = 2000;
  std::int32_t hysteresis = 1;
  bool grow_on_equal = false;
  bool guard = true;
  std::int64_t* counter = nullptr;  ///< += 1 where *ok, or always with counts_all; may be null
  bool counts_all = false;
};
void update_loss_scale(Stream stream, const LossScaleParams& params);

enum class Schedule {
  constant,
  piecewise_constant,
  exponential_decay,
  cosine_decay,
  cosine_decay_restarts,
  inverse_time_decay,
  polynomial_decay,
};

/// *rate of step *step, evaluated in double and rounded once.
struct LearningRateParams {
  static constexpr std::size_t k_max_pieces = 64;

  const std::int64_t* step = nullptr;
  float* rate = nullptr;
  Schedule schedule = Schedule::constant;
  double base = 0;
  double decay_rate = 0;
  double alpha = 0;
  double t_mul = 1;
  double m_mul = 1;
  double end = 0;
  double power = 1;
  double warmup_start = 0;
  double warmup_target = 0;
  std::int64_t decay_steps = 0;
  std::int64_t warmup_steps = 0;
  bool staircase = false;
  bool cycle = false;
  std::size_t pieces = 0;  ///< of piecewise_constant: that many values, one boundary fewer
  std::array<std::int64_t, k_max_pieces> boundaries{};
  std::array<double, k_max_pieces> values{};
};
void learning_rate(Stream stream, const LearningRateParams& params);

}  // namespace halfstep::backend::cuda::kernels
