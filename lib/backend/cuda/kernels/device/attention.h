#pragma once
// The parts of attention and its gradient that are the same.

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/tile.h"
#include "core/philox.h"

namespace halfstep::backend::cuda::kernels {

/// Of a launch; `packed`: rows of all tensors are loaded and stored in packs.
template <class T>
struct Attention {
  graph::ops::AttentionGeometry g;
  const T* query;
  const T* key;
  const T* value;
  const bool* taken;
  const std::int64_t* ordinal;
  std::uint64_t seed, stream;
  std::int64_t first;  ///< number of the dropout's draw
  float scale, rate, factor;
  bool packed;
};

/// The block's item, and the keys that its queries see.
template <class T>
struct AttentionItem {
  const Attention<T>& a;
  std::int64_t item, sample, head;

  __device__ AttentionItem(const Attention<T>& of, std::int64_t at) : a(of), item(at) {
    const Divided divided = divide(at, a.g.heads);
    sample = divided.quotient;
    head = divided.remainder;
  }
  template <class U>
  __device__ TileRows<U> rows(U* tensor, std::int64_t steps, std::int64_t channels) const {
    const std::int64_t first = a.g.steps_first ? sample * steps * a.g.heads + head : item * steps;
    return {tensor + first * channels, a.g.stride(channels), static_cast<int>(channels), a.packed};
  }
  /// Whether the mask has key `j`, which may be beyond the last.
  __device__ bool has(std::int64_t j) const {
    return j < a.g.keys && (a.taken == nullptr || a.taken[sample * a.g.keys + j]);
  }
  /// Whether query `i`, which may be beyond the last, sees key `j` of those that the mask has.
  __device__ bool sees(std::int64_t i, std::int64_t j) const {
    return i < a.g.queries && j < a.g.seen(i);
  }
};

/// The factors of a thread's weights by the dropout, of which four consecutive ones are drawn at
/// once.
template <class T>
class KeptWeights {
 public:
  __device__ explicit KeptWeights(const Attention<T>& a) : a_(a) {
    if (a.rate > 0) key_ = mix(a.stream, static_cast<std::uint64_t>(*a.ordinal));
  }
  __device__ float operator()(std::int64_t weight) {
    if (!(a_.rate > 0)) return 1;
    const auto number = static_cast<std::uint64_t>(a_.first + weight);
    if (number / 4 != four_) {
      four_ = number / 4;
      const auto words = random_words(a_.seed, key_, four_);
      for (int i = 0; i < 4; ++i) kept_[i] = to_uniform(words[i]) >= a_.rate ? a_.factor : 0;
    }
    const float low = number % 2 == 0 ? kept_[0] : kept_[1];
    const float high = number % 2 == 0 ? kept_[2] : kept_[3];
    return number % 4 < 2 ? low : high;
  }

 private:
  const Attention<T>& a_;
  std::uint64_t key_ = 0, four_ = ~std::uint64_t{0};
  float kept_[4] = {};
};

__device__ inline int up_to_four(std::int64_t n) { return static_cast<int>(n + 3) / 4 * 4; }

/// `pointers`: of all tensors of `dtype`.
template <class T>
Attention<T> attention_of(const AttentionInputs& in, std::initializer_list<const void*> pointers) {
  const graph::ops::AttentionGeometry& g = in.geometry;
  constexpr int k_width = k_pack_width<T>;
  bool packed = g.depth % k_width == 0 && g.value_depth % k_width == 0;
  for (const void* p : pointers) packed = packed && aligned(p, 16);
  return {.g = g,
          .query = static_cast<const T*>(in.query),
          .key = static_cast<const T*>(in.key),
          .value = static_cast<const T*>(in.value),
          .taken = in.taken,
          .ordinal = in.ordinal,
          .seed = in.dropout.seed,
          .stream = in.dropout.stream,
          .first = in.dropout.first,
          .scale = static_cast<float>(g.scale),
          .rate = static_cast<float>(in.dropout.rate),
          .factor = static_cast<float>(in.dropout.scale()),
          .packed = packed};
}

template <int width>
using TileWidth = std::integral_constant<int, width>;

/// Calls f with the element type and the width of the tiles.
template <class F>
void dispatch_attention(const AttentionInputs& in, const F& f) {
  const std::int64_t channels = std::max(in.geometry.depth, in.geometry.value_depth);
  dispatch_matmul(in.dtype, [&]<class T>(Type<T> type) {
    if (channels <= 32) return f(type, TileWidth<32>{});
    if (channels <= 64) return f(type, TileWidth<64>{});
    f(type, TileWidth<AttentionInputs::k_max_channels>{});
  });
}

template <int width>
std::int64_t tiles_of(std::int64_t steps) {
  return (steps + Tile<width>::k_steps - 1) / Tile<width>::k_steps;
}

inline Grid grid_of_tiles(std::int64_t tiles) {
  return {.blocks = tiles, .threads = k_tile_threads, .cooperates = true};
}

}  // namespace halfstep::backend::cuda::kernels
