#pragma once
// Launches of recurrent layers: of a part of one step, and of blocks that take all steps of a few
// samples and multiply their state themselves.

#include <cmath>
#include <type_traits>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/recurrent.h"
#include "backend/cuda/kernels/device/tile.h"

namespace halfstep::backend::cuda::kernels {

/// Part: a struct with compute(unit, p), a part of a step for a unit.
template <class Part, class T, class Params>
__global__ void rnn_part_kernel(Params p) {
  const std::int64_t count = p.step.geometry.batch * p.step.geometry.units;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    Part::compute(RnnUnit<T, T>(p.step, i), p);
  }
}

/// One thread for each unit of each sample.
template <class Part, class Params>
void launch_part(Stream stream, const Params& p) {
  const graph::ops::RnnGeometry& g = p.step.geometry;
  dispatch_matmul(p.step.dtype, [&]<class T>(Type<T>) {
    launch(rnn_part_kernel<Part, T, Params>, grid_of(g.batch * g.units), stream, p);
  });
}

/// Of a block that takes all steps.
inline constexpr unsigned k_block_threads = 512;
/// Rows of a kernel that a thread loads at once.
inline constexpr int k_chunk = 8;
/// Floats of shared memory for `rows` operands or sums of all gates, and of one.
template <int rows>
constexpr int k_wide = (k_max_columns * rows);
template <int rows>
constexpr int k_narrow = (k_max_units * rows);

/// c [rows, columns] = a [rows, depth] times b [depth, columns], or added to it. a, c and `parts`
/// are in shared memory; rows of b begin `row_b` elements after each other, and depth is a multiple
/// of k_chunk. Each thread multiplies four bytes of a row of b; where threads are left, they take
/// parts of the depth, whose sum does not depend on `rows`. The caller synchronizes before and
/// after.
template <class T, int rows>
__device__ inline void multiply_state(const float* a,
                                      int depth,
                                      const T* b,
                                      int row_b,
                                      int columns,
                                      float* c,
                                      bool adds,
                                      float* parts) {
  constexpr int k_width = sizeof(float) / sizeof(T);
  const int packs = columns / k_width, chunks = depth / k_chunk;
  const int wanted = static_cast<int>(threads()) / packs;
  const int groups = wanted < 1 ? 1 : wanted < chunks ? wanted : chunks;
  const int lanes = groups > 1 ? packs : static_cast<int>(threads());
  const int group = static_cast<int>(thread()) / lanes;
  const int first = static_cast<int>(thread()) % lanes;
  for (int pack = first; group < groups && pack < packs; pack += lanes) {
    float sum[rows][k_width] = {};
    const T* from = b + pack * k_width;
    const int end = chunks * (group + 1) / groups * k_chunk;
    for (int k = chunks * group / groups * k_chunk; k < end; k += k_chunk) {
      Pack<T, k_width> factor[k_chunk];
      for (int i = 0; i < k_chunk; ++i) factor[i] = load_pack<T, k_width>(from + (k + i) * row_b);
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < k_chunk; i += 4) {
          const Four x = load_pack<float, 4>(a + r * depth + k + i);
          for (int m = 0; m < 4; ++m) {
            for (int j = 0; j < k_width; ++j) {
              sum[r][j] = std::fma(x.element[m], load(factor[i + m].element[j]), sum[r][j]);
            }
          }
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < k_width; ++j) {
        const int at = r * columns + pack * k_width + j;
        if (groups > 1) {
          parts[group * rows * columns + at] = sum[r][j];
        } else {
          c[at] = adds ? c[at] + sum[r][j] : sum[r][j];
        }
      }
    }
  }
  if (groups == 1) return;
  sync_block();
  for (int at = static_cast<int>(thread()); at < rows * columns; at += k_block_threads) {
    float sum = adds ? c[at] : 0.0F;
    for (int i = 0; i < groups; ++i) sum += parts[i * rows * columns + at];
    c[at] = sum;
  }
}

/// The samples of a block.
struct BlockSamples {
  std::int64_t first;  ///< unit of all states
  std::int64_t count;  ///< units

  /// Of up to `rows` samples; sets step.first.
  __device__ BlockSamples(int rows, RnnStep& step) {
    const graph::ops::RnnGeometry& g = step.geometry;
    step.first = block() * rows;
    const std::int64_t left = g.batch - step.first;
    first = step.first * g.units;
    count = (left < rows ? left : rows) * g.units;
  }
  /// The part of all units.
  template <class Part, class T, class Params>
  __device__ void compute(const Params& p) const {
    for (std::int64_t i = thread(); i < count; i += threads()) {
      Part::compute(RnnUnit<T, float>(p.step, first + i), p);
    }
  }
};

/// Calls f with the element type, the samples of a block as a constant, and the kernel's grid.
template <class F>
void dispatch_blocks(const RnnStep& step, F&& f) {
  const int rows = samples_of_block(step.geometry, step.dtype);
  const Grid grid{.blocks = (step.geometry.batch + rows - 1) / rows,
                  .threads = k_block_threads,
                  .cooperates = true};
  dispatch_matmul(step.dtype, [&]<class T>(Type<T> type) {
    if (rows == 1) return f(type, std::integral_constant<int, 1>{}, grid);
    f(type, std::integral_constant<int, k_max_samples>{}, grid);
  });
}

}  // namespace halfstep::backend::cuda::kernels
