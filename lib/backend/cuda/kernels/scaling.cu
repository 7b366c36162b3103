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

/// A tensor of a launch, with the first of its blocks.
struct Checked {
  const void* x;
  std::int64_t elements;
  std::int32_t first_block;
  DType dtype;
  bool packed;  ///< x is aligned to 16 bytes
};

/// Tensors of one launch; kernels take at most 4 KiB of arguments.
struct Batch {
  static constexpr int k_most = 96;

  Checked tensor[k_most];
  int count;
};

/// `factor`: the element is checked after multiplication by it in float32.
template <class T>
__device__ inline bool not_finite(T x, const float* factor) {
  return factor == nullptr ? not_finite(x) : not_finite(static_cast<float>(load(x)) * *factor);
}

/// Checks a tensor by all of its blocks: `first` of `step` threads.
template <class T>
__device__ inline bool finds_not_finite(const Checked& t,
                                        const float* factor,
                                        std::int64_t first,
                                        std::int64_t step) {
  constexpr int k_width = k_pack_width<T>;
  const T* x = static_cast<const T*>(t.x);
  const std::int64_t packs = t.packed ? t.elements / k_width : 0;
  bool found = false;
  const auto check = [&](const Pack<T, k_width>& pack) {
    for (int i = 0; i < k_width; ++i) found |= not_finite(pack.element[i], factor);
  };
  std::int64_t p = first;
  for (; p + 3 * step < packs; p += 4 * step) {
    Pack<T, k_width> pack[4];
    for (int n = 0; n < 4; ++n) pack[n] = load_pack<T, k_width>(x + (p + n * step) * k_width);
    for (int n = 0; n < 4; ++n) check(pack[n]);
  }
  for (; p < packs; p += step) check(load_pack<T, k_width>(x + p * k_width));
  for (std::int64_t i = packs * k_width + first; i < t.elements; i += step) {
    found |= not_finite(x[i], factor);
  }
  return found;
}

/// All threads that find a non-finite element write the same value, to the second ticket. The last
/// block of the last of several launches writes *ok.
__global__ void HALFSTEP_BLOCK_OF(256, 4) check_kernel(Batch batch,
                                                       const float* unscale,
                                                       bool reciprocal,
                                                       unsigned* tickets,
                                                       bool last_launch,
                                                       bool* ok) {
  int n = 0;
  while (n + 1 < batch.count && batch.tensor[n + 1].first_block <= block()) ++n;
  const Checked& t = batch.tensor[n];
  const std::int64_t end =
      n + 1 < batch.count ? std::int64_t{batch.tensor[n + 1].first_block} : blocks();
  const std::int64_t first = (block() - t.first_block) * threads() + thread();
  const std::int64_t step = (end - t.first_block) * threads();
  const float given = unscale == nullptr ? 1.0F : *unscale;
  const float factor = reciprocal ? 1.0F / given : given;
  const float* by = unscale == nullptr ? nullptr : &factor;
  bool found = false;
  if (batch.count > 0) {
    switch (t.dtype) {
      case DType::float32:
        found = finds_not_finite<float>(t, by, first, step);
        break;
      case DType::float64:
        found = finds_not_finite<double>(t, by, first, step);
        break;
      case DType::float16:
        found = finds_not_finite<float16>(t, by, first, step);
        break;
      default:
        found = finds_not_finite<bfloat16>(t, by, first, step);
    }
  }
  if (found) tickets[1] = 1;
  if (!is_last_block(tickets, blocks()) || !last_launch || thread() != 0) return;
  *ok = tickets[1] == 0;
  tickets[1] = 0;
}

__global__ void loss_scale_kernel(LossScaleParams p) {
  if (thread() != 0) return;
  if (p.counter != nullptr && (*p.ok || p.counts_all)) ++*p.counter;
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
  Batch batch{};
  Grid grid{.blocks = 0, .cooperates = true};
  const auto flush = [&](bool last) {
    grid.blocks = std::max<std::int64_t>(grid.blocks, 1);
    launch(check_kernel, grid, stream, batch, p.unscale, p.reciprocal, p.tickets.data, last, p.ok);
    batch.count = 0;
    grid.blocks = 0;
  };
  for (const CheckedTensor& tensor : p.tensors) {
    if (!is_floating(tensor.dtype) || tensor.elements == 0) continue;
    if (batch.count == Batch::k_most) flush(false);
    const bool packed = aligned(tensor.x, 16);
    batch.tensor[batch.count++] = {
        tensor.x, tensor.elements, static_cast<std::int32_t>(grid.blocks), tensor.dtype, packed};
    const auto width = static_cast<std::int64_t>(packed ? 16 / size_bytes(tensor.dtype) : 1);
    // Eight packs a thread: the barrier at the end is paid for by fewer blocks.
    grid.blocks += grid_of((tensor.elements + 8 * width - 1) / (8 * width), grid.threads).blocks;
  }
  flush(true);
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
