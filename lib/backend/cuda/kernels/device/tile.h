#pragma once
// Matmuls of tiles in shared memory, by FMA in float32: a block has k_tile_threads threads.

#include <cmath>

#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {

constexpr int k_tile_threads = 128;

using Four = Pack<float, 4>;

/// The tiles of heads of up to `width` channels, in shared memory: `k_steps` queries or keys in
/// rows of k_stride floats, and the scores of both in rows of k_score_stride. Rows that threads of
/// a warp read together begin in different banks.
template <int width>
struct Tile {
  static constexpr int k_steps = width > 64 ? 16 : 32;
  static constexpr int k_stride = width + 4;
  static constexpr int k_score_stride = k_steps + 4;
  static constexpr int k_packs = k_steps * k_stride / 4;
  static constexpr int k_score_packs = k_steps * k_score_stride / 4;
  /// The threads that share a row of scores, each for consecutive ones.
  static constexpr int k_lanes = k_tile_threads / k_steps;
  static constexpr int k_columns = k_steps / k_lanes;

  __device__ static int row() { return static_cast<int>(thread()) / k_lanes; }
  __device__ static int lane() { return static_cast<int>(thread()) % k_lanes; }
};

/// The rows of an item in a tensor.
template <class T>
struct TileRows {
  T* data;
  std::int64_t stride;
  int channels;
  bool packed;

  __device__ T* row(std::int64_t i) const { return data + i * stride; }
};

/// Fills a tile with `count` rows from row `first` on, and zeros.
template <int width, class T>
__device__ inline void load_tile(float* to,
                                 const TileRows<const T>& from,
                                 std::int64_t first,
                                 std::int64_t count) {
  using S = Tile<width>;
  constexpr int k_width = k_pack_width<T>, k_packs = width / k_width;
  for (int i = static_cast<int>(thread()); i < S::k_steps * k_packs; i += k_tile_threads) {
    const int row = i / k_packs, channel = i % k_packs * k_width;
    Pack<T, k_width> pack{};
    if (row < count && channel < from.channels) {
      const T* at = from.row(first + row) + channel;
      if (from.packed) {
        pack = load_pack<T, k_width>(at);
      } else {
        for (int n = 0; n < k_width; ++n) {
          if (channel + n < from.channels) pack.element[n] = at[n];
        }
      }
    }
    float* const shared = to + row * S::k_stride + channel;
    for (int n = 0; n < k_width; n += 4) {
      Four four;
      for (int k = 0; k < 4; ++k) four.element[k] = load(pack.element[n + k]);
      *reinterpret_cast<Four*>(shared + n) = four;
    }
  }
}

/// store(i, j, sum over `channels` of a[i] b[j]) for the rows of two tiles.
template <int width, class Store>
__device__ inline void multiply_rows(const float* a,
                                     const float* b,
                                     int channels,
                                     const Store& store_score) {
  using S = Tile<width>;
  constexpr int k_across = 8, k_down = k_tile_threads / k_across;
  constexpr int k_rows = S::k_steps / k_down, k_columns = S::k_steps / k_across;
  const int x = static_cast<int>(thread()) % k_across, y = static_cast<int>(thread()) / k_across;
  float sum[k_rows][k_columns] = {};
  for (int c = 0; c < channels; c += 4) {
    Four left[k_rows], right[k_columns];
    for (int r = 0; r < k_rows; ++r) {
      left[r] = load_pack<float, 4>(a + (y + r * k_down) * S::k_stride + c);
    }
    for (int n = 0; n < k_columns; ++n) {
      right[n] = load_pack<float, 4>(b + (x + n * k_across) * S::k_stride + c);
    }
    for (int k = 0; k < 4; ++k) {
      for (int r = 0; r < k_rows; ++r) {
        for (int n = 0; n < k_columns; ++n) {
          sum[r][n] = std::fma(left[r].element[k], right[n].element[k], sum[r][n]);
        }
      }
    }
  }
  for (int r = 0; r < k_rows; ++r) {
    for (int n = 0; n < k_columns; ++n) {
      store_score(y + r * k_down, x + n * k_across, sum[r][n]);
    }
  }
}

/// A thread's part of the product of a tile of scores and one of rows: k_rows steps, of which it
/// has four channels.
template <int width>
struct TileSums {
  using S = Tile<width>;
  static constexpr int k_across = width / 4;
  static constexpr int k_rows = S::k_steps * k_across / k_tile_threads;

  float sum[k_rows][4] = {};

  __device__ static int row() { return static_cast<int>(thread()) / k_across * k_rows; }
  __device__ static int channel() { return static_cast<int>(thread()) % k_across * 4; }

  /// Adds scores times rows, over the first `count` rows up to a multiple of 4.
  __device__ void add(const float* scores, const float* rows, std::int64_t count) {
    for (int j = 0; j < static_cast<int>(count); j += 4) {
      Four left[k_rows];
      for (int r = 0; r < k_rows; ++r) {
        left[r] = load_pack<float, 4>(scores + (row() + r) * S::k_score_stride + j);
      }
      for (int k = 0; k < 4; ++k) {
        const Four right = load_pack<float, 4>(rows + (j + k) * S::k_stride + channel());
        for (int r = 0; r < k_rows; ++r) multiply(r, left[r].element[k], right);
      }
    }
  }
  /// Adds the transposed scores times rows, over the first `count` rows.
  __device__ void add_transposed(const float* scores, const float* rows, std::int64_t count) {
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const auto left = load_pack<float, k_rows>(scores + i * S::k_score_stride + row());
      const Four right = load_pack<float, 4>(rows + i * S::k_stride + channel());
      for (int r = 0; r < k_rows; ++r) multiply(r, left.element[r], right);
    }
  }
  /// Stores finish(row, sum) of `count` rows, to row `first` on.
  template <class T, class Finish>
  __device__ void store_rows(const TileRows<T>& to,
                             std::int64_t first,
                             std::int64_t count,
                             const Finish& finish) const {
    if (channel() >= to.channels) return;
    for (int r = 0; r < k_rows; ++r) {
      if (row() + r >= count) return;
      Pack<T, 4> pack;
      for (int k = 0; k < 4; ++k) pack.element[k] = store<T>(finish(row() + r, sum[r][k]));
      T* const at = to.row(first + row() + r) + channel();
      if (to.packed) {
        store_pack<T, 4>(at, pack);
        continue;
      }
      for (int k = 0; k < 4; ++k) {
        if (channel() + k < to.channels) at[k] = pack.element[k];
      }
    }
  }

 private:
  __device__ void multiply(int r, float left, const Four& right) {
    for (int c = 0; c < 4; ++c) sum[r][c] = std::fma(left, right.element[c], sum[r][c]);
  }
};

}  // namespace halfstep::backend::cuda::kernels
