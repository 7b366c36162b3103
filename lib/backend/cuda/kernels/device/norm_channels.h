#pragma once
// Batch normalization's channels: their statistics, and the grids whose threads keep theirs.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <type_traits>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {

/// A per-channel vector whose dtype is known at run time. A channel is read once, so the dispatch
/// per element is cheap.
template <class Pointer>
struct StatisticsVector {
  DType dtype;
  Pointer data;

  template <class C>
  __device__ C get(std::int64_t i) const {
    switch (dtype) {
      case DType::float32:
        return static_cast<C>(static_cast<const float*>(data)[i]);
      case DType::float64:
        return static_cast<C>(static_cast<const double*>(data)[i]);
      default:
        return static_cast<C>(load(static_cast<const bfloat16*>(data)[i]));
    }
  }
  /// No effect without a vector.
  template <class C>
  __device__ void set(std::int64_t i, C x) const {
    if (data == nullptr) return;
    switch (dtype) {
      case DType::float32:
        static_cast<float*>(data)[i] = static_cast<float>(x);
        break;
      case DType::float64:
        static_cast<double*>(data)[i] = static_cast<double>(x);
        break;
      default:
        static_cast<bfloat16*>(data)[i] = store<bfloat16>(x);
    }
  }
};
using StatisticsInput = StatisticsVector<const void*>;
using StatisticsOutput = StatisticsVector<void*>;

/// Mean, gain and offset of a channel, from which y is computed.
template <class C>
struct Channel {
  C mean, gain, offset;
};

/// A grid for packs of all channels; its threads loop, so that few of them load the channels.
inline Grid grid_of_channels(std::int64_t packs, std::int64_t channel_packs) {
  constexpr std::int64_t k_blocks = 1024, k_threads = 256;
  const std::int64_t step = channel_packs / std::gcd(channel_packs, k_threads);
  const std::int64_t blocks = std::min((packs + k_threads - 1) / k_threads, k_blocks);
  return {.blocks = (blocks + step - 1) / step * step, .threads = k_threads};
}

/// The thread's first channel.
template <int width>
__device__ inline std::int64_t first_channel(std::int64_t channel_packs) {
  return divide(thread_of_grid(), channel_packs).remainder * width;
}

/// Packs that a thread loads before it stores the first of them.
constexpr int k_in_flight = 2;

/// Calls f with the width of packs as a constant.
template <class T, class F>
void with_width(bool packed, std::int64_t channels, F&& f) {
  constexpr int k_width = k_pack_width<T>;
  if (packed && channels % k_width == 0) return f(std::integral_constant<int, k_width>{});
  f(std::integral_constant<int, 1>{});
}

/// Sizes of the parts of a workspace, rounded up to 16 bytes.
inline std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// Errors: LaunchError for statistics that are not float32, float64 or bfloat16.
inline void check_statistics(DType dtype) {
  if (dtype != DType::float32 && dtype != DType::float64 && dtype != DType::bfloat16) refuse(dtype);
}

}  // namespace halfstep::backend::cuda::kernels
