#include "backend/cuda/kernels/scaling.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/cuda/kernels/device/fold_parts.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/share.h"

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
struct Part {
  const void* x;
  std::int64_t elements;
  std::int32_t first_block;
  DType dtype;
  bool packed;  ///< x is aligned to 16 bytes
};

/// Tensors of one launch; kernels take at most 4 KiB of arguments.
template <class Tensor>
struct Batch {
  static constexpr int k_max = static_cast<int>(k_max_tensors);

  Tensor tensor[k_max];
  int count;
};

/// Calls f with each element of the thread's share.
template <class T, class F>
__device__ inline void for_each(const Part& t, const Share& share, F&& f) {
  constexpr int k_width = k_pack_width<T>;
  const T* x = static_cast<const T*>(t.x);
  const std::int64_t packs = t.packed ? t.elements / k_width : 0, step = share.step;
  const auto take = [&](const Pack<T, k_width>& pack) {
    for (int i = 0; i < k_width; ++i) f(pack.element[i]);
  };
  std::int64_t p = share.first;
  for (; p + 3 * step < packs; p += 4 * step) {
    Pack<T, k_width> pack[4];
    for (int n = 0; n < 4; ++n) pack[n] = load_pack<T, k_width>(x + (p + n * step) * k_width);
    for (int n = 0; n < 4; ++n) take(pack[n]);
  }
  for (; p < packs; p += step) take(load_pack<T, k_width>(x + p * k_width));
  for (std::int64_t i = packs * k_width + share.first; i < t.elements; i += step) f(x[i]);
}

/// Calls f with each element, of its dtype.
template <class F>
__device__ inline void for_each_of_dtype(const Part& t, const Share& share, F&& f) {
  switch (t.dtype) {
    case DType::float32:
      return for_each<float>(t, share, f);
    case DType::float64:
      return for_each<double>(t, share, f);
    case DType::float16:
      return for_each<float16>(t, share, f);
    default:
      return for_each<bfloat16>(t, share, f);
  }
}

/// All threads that find a non-finite element write the same value, to the second ticket. The last
/// block of the last of several launches writes *ok.
__global__ void HALFSTEP_BLOCK_OF(256, 4) check_kernel(Batch<Part> batch,
                                                       const float* unscale,
                                                       bool reciprocal,
                                                       unsigned* tickets,
                                                       bool last_launch,
                                                       bool* ok) {
  const Share share = share_of(batch.tensor, batch.count);
  const float given = unscale == nullptr ? 1.0F : *unscale;
  const float factor = reciprocal ? 1.0F / given : given;
  bool found = false;
  if (batch.count > 0) {
    for_each_of_dtype(batch.tensor[share.tensor], share, [&](auto x) {
      found |=
          unscale == nullptr ? not_finite(x) : not_finite(static_cast<float>(load(x)) * factor);
    });
  }
  if (found) tickets[1] = 1;
  if (!is_last_block(tickets, blocks()) || !last_launch || thread() != 0) return;
  *ok = tickets[1] == 0;
  tickets[1] = 0;
}

struct Squared : Part {
  float* norm;
};

struct FloatSum {
  using Value = float;
  __device__ float merge(float a, float b) const { return a + b; }
};

/// Elements that a thread squares in turn. The order of a sum depends on the number of elements
/// alone, so that a step has the same bits whether it reads gradients in 16 bits or cast.
constexpr int k_squared = 8;

/// The sum of the squares of a thread's share, after multiplication by `factor`.
template <class T>
__device__ inline float sum_of_squares(const Part& t, const Share& share, float factor) {
  constexpr int k_width = k_pack_width<T>, k_packs = k_squared / k_width, k_in_flight = 4;
  const T* x = static_cast<const T*>(t.x);
  float sum = 0;
  const auto add = [&](T element) {
    const float value = load(element) * factor;
    sum = std::fma(value, value, sum);
  };
  const std::int64_t whole = t.elements / k_squared, step = share.step;
  std::int64_t g = share.first;
  if (t.packed) {
    for (; g + (k_in_flight - 1) * step < whole; g += k_in_flight * step) {
      Pack<T, k_width> pack[k_in_flight * k_packs];
      for (int n = 0; n < k_in_flight * k_packs; ++n) {
        const std::int64_t group = g + n / k_packs * step;
        pack[n] = load_pack<T, k_width>(x + group * k_squared + n % k_packs * k_width);
      }
      for (const auto& loaded : pack) {
        for (int i = 0; i < k_width; ++i) add(loaded.element[i]);
      }
    }
  }
  for (; g <= whole; g += step) {
    const std::int64_t begin = g * k_squared;
    const std::int64_t end = g < whole ? begin + k_squared : t.elements;
    for (std::int64_t i = begin; i < end; ++i) add(x[i]);
  }
  return sum;
}

/// The last block sums the parts of all tensors, each by a warp.
__global__ void HALFSTEP_BLOCK_OF(256, 4)
    squares_kernel(Batch<Squared> batch, const float* unscale, float* parts, unsigned* ticket) {
  const Share share = share_of(batch.tensor, batch.count);
  const float factor = unscale == nullptr ? 1.0F : *unscale;
  const Squared& t = batch.tensor[share.tensor];
  float sum = 0;
  switch (t.dtype) {
    case DType::float16:
      sum = sum_of_squares<float16>(t, share, factor);
      break;
    case DType::bfloat16:
      sum = sum_of_squares<bfloat16>(t, share, factor);
      break;
    default:
      sum = sum_of_squares<float>(t, share, factor);
  }
  sum = merge_block(FloatSum{}, sum);
  if (thread() == 0) parts[block()] = sum;
  if (!is_last_block(ticket, blocks())) return;
  constexpr unsigned k_warp = 32;
  for (int n = static_cast<int>(thread() / k_warp); n < batch.count;
       n += static_cast<int>(threads() / k_warp)) {
    const std::int64_t end =
        n + 1 < batch.count ? std::int64_t{batch.tensor[n + 1].first_block} : blocks();
    float total = 0;
    for (std::int64_t p = batch.tensor[n].first_block + thread() % k_warp; p < end; p += k_warp) {
      total += parts[p];
    }
    for (unsigned half = k_warp / 2; half > 0; half /= 2) total += shuffle_xor(total, half);
    if (thread() % k_warp == 0) *batch.tensor[n].norm = total;
  }
}

__global__ void loss_scale_kernel(LossScaleParams p) {
  if (thread() != 0) return;
  if (p.counter != nullptr && (*p.ok || p.rule.counts_all)) ++*p.counter;
  p.rule.update(*p.ok, *p.scale, *p.good_steps, *p.hysteresis_left);
}

__global__ void learning_rate_kernel(LearningRateParams p) {
  if (thread() != 0) return;
  *p.rate = static_cast<float>(p.schedule.rate(*p.step, p.boundaries, p.values, p.pieces));
}

/// The tensor, with the next blocks of the grid for eight packs of `width` a thread: the barrier at
/// the end is paid for by fewer blocks.
Part part_of(const CheckedTensor& tensor, Grid& grid, std::int64_t width) {
  const auto first = static_cast<std::int32_t>(grid.blocks);
  grid.blocks += grid_of((tensor.elements + 8 * width - 1) / (8 * width), grid.threads).blocks;
  return {tensor.x, tensor.elements, first, tensor.dtype, aligned(tensor.x, 16)};
}

/// The smallest grid, for work of a single thread.
constexpr Grid k_one_warp{.blocks = 1, .threads = 32};

}  // namespace

void all_finite(Stream stream, const AllFiniteParams& p) {
  Batch<Part> batch{};
  Grid grid{.blocks = 0, .cooperates = true};
  const auto flush = [&](bool last) {
    grid.blocks = std::max<std::int64_t>(grid.blocks, 1);
    launch(check_kernel, grid, stream, batch, p.unscale, p.reciprocal, p.tickets.data, last, p.ok);
    batch.count = 0;
    grid.blocks = 0;
  };
  for (const CheckedTensor& tensor : p.tensors) {
    if (!is_floating(tensor.dtype) || tensor.elements == 0) continue;
    if (batch.count == Batch<Part>::k_max) flush(false);
    const std::size_t width = aligned(tensor.x, 16) ? 16 / size_bytes(tensor.dtype) : 1;
    batch.tensor[batch.count++] = part_of(tensor, grid, static_cast<std::int64_t>(width));
  }
  flush(true);
}

std::size_t squared_norms_workspace(std::span<const SquaredTensor> tensors) {
  Grid grid{.blocks = 1};
  for (const SquaredTensor& tensor : tensors) part_of(tensor, grid, k_squared);
  return static_cast<std::size_t>(grid.blocks) * sizeof(float);
}

void squared_norms(Stream stream, const SquaredNormsParams& p) {
  Batch<Squared> batch{};
  Grid grid{.blocks = 0, .cooperates = true};
  const auto flush = [&] {
    grid.blocks = std::max<std::int64_t>(grid.blocks, 1);
    launch(squares_kernel,
           grid,
           stream,
           batch,
           p.unscale,
           static_cast<float*>(p.workspace),
           p.tickets.data);
    batch.count = 0;
    grid.blocks = 0;
  };
  for (const SquaredTensor& tensor : p.tensors) {
    if (batch.count == Batch<Squared>::k_max) flush();
    batch.tensor[batch.count++] = {part_of(tensor, grid, k_squared), tensor.norm};
  }
  if (batch.count > 0) flush();
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
