#include "backend/cuda/kernels/scaling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "backend/cuda/kernels/device/element.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

// A number is finite unless all exponent bits are set.
__device__ inline bool not_finite(float16 x) { return (x.bits & 0x7c00U) == 0x7c00U; }
__device__ inline bool not_finite(bfloat16 x) { return (x.bits & 0x7f80U) == 0x7f80U; }
__device__ inline bool not_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7f800000U) == 0x7f800000U;
}
__device__ inline bool not_finite(double x) {
  constexpr std::uint64_t k_exponent = 0x7ff0000000000000U;
  return (std::bit_cast<std::uint64_t>(x) & k_exponent) == k_exponent;
}

/// Tensors of one launch; kernels take at most 4 KiB of arguments.
struct Batch {
  static constexpr int k_tensors = 128;

  const void* x[k_tensors];
  std::int64_t elements[k_tensors];
  DType dtype[k_tensors];
};

/// Checks the block's part of a tensor.
template <class T>
__device__ inline bool finds_not_finite(const T* x, std::int64_t elements, std::int64_t packs) {
  constexpr int k_width = k_pack_width<T>;
  bool found = false;
  for (std::int64_t p = thread_of_grid(); p < packs; p += threads_of_grid()) {
    const auto pack = load_pack<T, k_width>(x + p * k_width);
    for (int i = 0; i < k_width; ++i) found = found || not_finite(pack.element[i]);
  }
  for (std::int64_t i = packs * k_width + thread_of_grid(); i < elements; i += threads_of_grid()) {
    found = found || not_finite(x[i]);
  }
  return found;
}

template <class T>
__device__ inline bool finds_not_finite(const void* x, std::int64_t elements) {
  const bool packed = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  return finds_not_finite(
      static_cast<const T*>(x), elements, packed ? elements / k_pack_width<T> : 0);
}

__global__ void set_kernel(bool* ok) {
  if (thread() == 0) *ok = true;
}

/// One row of blocks per tensor. All threads that find a non-finite element write the same value.
__global__ void check_kernel(Batch batch, bool* ok) {
  const std::int64_t n = batch.elements[row()];
  const void* x = batch.x[row()];
  bool found = false;
  switch (batch.dtype[row()]) {
    case DType::float32:
      found = finds_not_finite<float>(x, n);
      break;
    case DType::float64:
      found = finds_not_finite<double>(x, n);
      break;
    case DType::float16:
      found = finds_not_finite<float16>(x, n);
      break;
    default:
      found = finds_not_finite<bfloat16>(x, n);
  }
  if (found) *ok = false;
}

__global__ void loss_scale_kernel(LossScaleParams p) {
  if (thread() != 0) return;
  std::int32_t& good_steps = *p.good_steps;
  std::int32_t& hysteresis_left = *p.hysteresis_left;
  if (!*p.ok) {
    good_steps = 0;
    if (--hysteresis_left > 0) return;
    hysteresis_left = p.hysteresis;
    const float lower = *p.scale * p.backoff_factor;
    *p.scale = lower < p.min_scale ? p.min_scale : lower;
    return;
  }
  const std::int64_t good = std::int64_t{good_steps} + 1;
  if (p.grow_on_equal ? good != p.growth_steps : good < p.growth_steps) {
    constexpr std::int64_t k_most = std::numeric_limits<std::int32_t>::max();
    good_steps = static_cast<std::int32_t>(good < k_most ? good : k_most);
    return;
  }
  good_steps = 0;
  hysteresis_left = p.hysteresis;
  const float grown = *p.scale * p.growth_factor;
  const bool too_large = !std::isfinite(grown) || (p.max_scale > 0 && grown > p.max_scale);
  if (!p.guard || !too_large) *p.scale = grown;
}

__device__ inline double rate_after_warmup(const LearningRateParams& p, std::int64_t t) {
  if (p.schedule == Schedule::constant) return p.base;
  if (p.schedule == Schedule::piecewise_constant) {
    std::size_t piece = 0;
    while (piece + 1 < p.pieces && p.boundaries[piece] < t) ++piece;
    return p.values[piece];
  }
  double part = static_cast<double>(t) / static_cast<double>(p.decay_steps);
  if (p.schedule == Schedule::cosine_decay) {
    const double cosine = (1 + std::cos(std::numbers::pi * std::fmin(part, 1.0))) / 2;
    return p.base * ((1 - p.alpha) * cosine + p.alpha);
  }
  if (p.schedule == Schedule::polynomial_decay) {
    part = p.cycle ? part / std::fmax(1.0, std::ceil(part)) : std::fmin(part, 1.0);
    return (p.base - p.end) * std::pow(1 - part, p.power) + p.end;
  }
  if (p.staircase) part = std::floor(part);
  return p.schedule == Schedule::exponential_decay ? p.base * std::pow(p.decay_rate, part)
                                                   : p.base / (1 + p.decay_rate * part);
}

__global__ void learning_rate_kernel(LearningRateParams p) {
  if (thread() != 0) return;
  const std::int64_t step = *p.step;
  double rate = 0;
  if (step < p.warmup_steps) {
    const double done = static_cast<double>(step) / static_cast<double>(p.warmup_steps);
    rate = p.warmup_start + (p.warmup_target - p.warmup_start) * done;
  } else {
    rate = rate_after_warmup(p, step - p.warmup_steps);
  }
  *p.rate = static_cast<float>(rate);
}

/// The smallest grid, for work of a single thread.
constexpr Grid k_one_warp{.blocks = 1, .threads = 32};

}  // namespace

void all_finite(Stream stream, const AllFiniteParams& p) {
  launch(set_kernel, k_one_warp, stream, p.ok);
  Batch batch{};
  std::int64_t count = 0;
  std::int64_t largest = 0;
  const auto flush = [&] {
    // Most tensors are far smaller than the largest: a limited number of blocks loops over the
    // pieces.
    Grid grid = grid_of((largest + 15) / 16);
    grid.blocks = std::min<std::int64_t>(grid.blocks, 1024);
    grid.rows = count;
    launch(check_kernel, grid, stream, batch, p.ok);
    count = largest = 0;
  };
  for (const CheckedTensor& tensor : p.tensors) {
    if (!is_floating(tensor.dtype) || tensor.elements == 0) continue;
    batch.x[count] = tensor.x;
    batch.elements[count] = tensor.elements;
    batch.dtype[count] = tensor.dtype;
    largest = std::max(largest, tensor.elements);
    if (++count == Batch::k_tensors) flush();
  }
  if (count > 0) flush();
}

void update_loss_scale(Stream stream, const LossScaleParams& p) {
  launch(loss_scale_kernel, k_one_warp, stream, p);
}

void learning_rate(Stream stream, const LearningRateParams& p) {
  if (p.pieces > LearningRateParams::k_max_pieces) {
    throw LaunchError("a learning rate of " + std::to_string(p.pieces) + " pieces");
  }
  launch(learning_rate_kernel, k_one_warp, stream, p);
}

}  // namespace halfstep::backend::cuda::kernels
