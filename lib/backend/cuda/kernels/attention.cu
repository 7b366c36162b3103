#include "backend/cuda/kernels/attention.h"

#include <cmath>
#include <limits>

#include "backend/cuda/kernels/device/attention.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr float k_lowest = -std::numeric_limits<float>::infinity();

template <class T, int width>
__global__ void HALFSTEP_BLOCK_OF(k_tile_threads, 4)
    attention_kernel(Attention<T> a, T* result, float* log_sum_exp) {
  using S = Tile<width>;
  HALFSTEP_SHARED(Four, query_packs, S::k_packs);
  HALFSTEP_SHARED(Four, key_packs, S::k_packs);
  HALFSTEP_SHARED(Four, value_packs, S::k_packs);
  HALFSTEP_SHARED(Four, score_packs, S::k_score_packs);
  HALFSTEP_SHARED(Four, weight_packs, S::k_score_packs);
  HALFSTEP_SHARED(float, factors, S::k_steps);
  HALFSTEP_SHARED(float, parts, k_tile_threads);
  HALFSTEP_SHARED(bool, has, S::k_steps);
  auto* const query = reinterpret_cast<float*>(query_packs);
  auto* const key = reinterpret_cast<float*>(key_packs);
  auto* const value = reinterpret_cast<float*>(value_packs);
  auto* const scores = reinterpret_cast<float*>(score_packs);
  auto* const weights = reinterpret_cast<float*>(weight_packs);

  const graph::ops::AttentionGeometry& g = a.g;
  const Divided tile = divide(block(), (g.queries + S::k_steps - 1) / S::k_steps);
  const AttentionItem<T> item(a, tile.quotient);
  const std::int64_t i0 = tile.remainder * S::k_steps;
  const std::int64_t queries = std::min<std::int64_t>(S::k_steps, g.queries - i0);
  const std::int64_t end = g.seen(i0 + queries - 1);
  const auto keys_of = item.rows(a.key, g.keys, g.depth);
  const auto values_of = item.rows(a.value, g.keys, g.value_depth);
  const int channels = up_to_four(g.depth);
  const int row = S::row(), column = S::lane() * S::k_columns;
  load_tile<width>(query, item.rows(a.query, g.queries, g.depth), i0, queries);
  KeptWeights<T> kept(a);
  TileSums<width> sums;
  float largest = k_lowest, sum = 0;  // the sum of the thread's weights
  for (std::int64_t j0 = 0; j0 < end; j0 += S::k_steps) {
    const std::int64_t keys = std::min<std::int64_t>(S::k_steps, g.keys - j0);
    load_tile<width>(key, keys_of, j0, keys);
    load_tile<width>(value, values_of, j0, keys);
    if (thread() < S::k_steps) has[thread()] = item.has(j0 + thread());
    sync_block();
    multiply_rows<width>(query, key, channels, [&](int i, int j, float score) {
      const bool sees = has[j] && item.sees(i0 + i, j0 + j);
      scores[i * S::k_score_stride + j] = sees ? score * a.scale : k_lowest;
    });
    sync_block();
    float now = largest;
    for (int j = 0; j < S::k_steps; j += 4) {
      const Four four = load_pack<float, 4>(scores + row * S::k_score_stride + j);
      for (int k = 0; k < 4; ++k) now = four.element[k] > now ? four.element[k] : now;
    }
    const float factor = now == largest ? 1.0F : std::exp(largest - now);
    largest = now;
    sum *= factor;
    if (S::lane() == 0) factors[row] = factor;
    for (int j = column; j < column + S::k_columns; ++j) {
      const int at = row * S::k_score_stride + j;
      float weight = 0;
      if (has[j] && item.sees(i0 + row, j0 + j)) {
        weight = std::exp(scores[at] - largest);
        sum += weight;
        weight *= kept(g.weight(item.item, i0 + row, j0 + j));
      }
      weights[at] = weight;
    }
    sync_block();
    for (int r = 0; r < TileSums<width>::k_rows; ++r) {
      for (int c = 0; c < 4; ++c) sums.sum[r][c] *= factors[TileSums<width>::row() + r];
    }
    sums.add(weights, value, keys);
    sync_block();
  }
  parts[thread()] = sum;
  sync_block();
  const auto sum_of = [&](int of) {
    float total = 0;
    for (int i = 0; i < S::k_lanes; ++i) total += parts[of * S::k_lanes + i];
    return total;
  };
  // Without a key that a query sees, its sum is 0.
  sums.store_rows(item.rows(result, g.queries, g.value_depth), i0, queries, [&](int of, float x) {
    const float total = sum_of(of);
    return total == 0 ? 0.0F : x / total;
  });
  if (S::lane() != 0 || row >= queries) return;
  log_sum_exp[item.item * g.queries + i0 + row] = largest + std::log(sum_of(row));
}

}  // namespace

void attention(Stream stream, const AttentionParams& p) {
  const AttentionInputs& in = p.inputs;
  dispatch_attention(in, [&]<class T, int width>(Type<T>, TileWidth<width>) {
    launch(attention_kernel<T, width>,
           grid_of_tiles(in.geometry.items() * tiles_of<width>(in.geometry.queries)),
           stream,
           attention_of<T>(in, {in.query, in.key, in.value, p.result}),
           static_cast<T*>(p.result),
           p.log_sum_exp);
  });
}

}  // namespace halfstep::backend::cuda::kernels
