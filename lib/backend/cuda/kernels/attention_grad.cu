#include <cmath>

#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/device/attention.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class T>
struct Gradients {
  const T* dy;
  const T* result;
  const float* log_sum_exp;
  T* dquery;
  T* dkey;
  T* dvalue;
  std::int64_t key_tiles, query_tiles;
  bool single;  ///< one tile of scores has all queries and keys of an item
};

template <class T, int width>
__global__ void HALFSTEP_BLOCK_OF(k_tile_threads, 4)
    attention_grad_kernel(Attention<T> a, Gradients<T> t) {
  using S = Tile<width>;
  HALFSTEP_SHARED(Four, query_packs, S::k_packs);
  HALFSTEP_SHARED(Four, dy_packs, S::k_packs);
  HALFSTEP_SHARED(Four, key_packs, S::k_packs);
  HALFSTEP_SHARED(Four, value_packs, S::k_packs);
  HALFSTEP_SHARED(Four, weight_packs, S::k_score_packs);
  HALFSTEP_SHARED(Four, gradient_packs, S::k_score_packs);
  HALFSTEP_SHARED(float, means, k_tile_threads);
  HALFSTEP_SHARED(float, logs, S::k_steps);
  HALFSTEP_SHARED(bool, has, S::k_steps);
  auto* const query = reinterpret_cast<float*>(query_packs);
  auto* const dy = reinterpret_cast<float*>(dy_packs);
  auto* const key = reinterpret_cast<float*>(key_packs);
  auto* const value = reinterpret_cast<float*>(value_packs);
  auto* const weights = reinterpret_cast<float*>(weight_packs);
  auto* const gradients = reinterpret_cast<float*>(gradient_packs);

  const graph::ops::AttentionGeometry& g = a.g;
  const Divided tile = divide(block(), t.single ? 1 : t.key_tiles + t.query_tiles);
  const AttentionItem<T> item(a, tile.quotient);
  const bool by_keys = tile.remainder < t.key_tiles;
  const auto queries_of = item.rows(a.query, g.queries, g.depth);
  const auto dys_of = item.rows(t.dy, g.queries, g.value_depth);
  const auto results_of = item.rows(t.result, g.queries, g.value_depth);
  const auto keys_of = item.rows(a.key, g.keys, g.depth);
  const auto values_of = item.rows(a.value, g.keys, g.value_depth);
  const int channels = up_to_four(g.depth);
  const int value_channels = up_to_four(g.value_depth);
  const int row = S::row(), column = S::lane() * S::k_columns;
  const auto tile_of = [](std::int64_t from, std::int64_t steps) {
    return std::min<std::int64_t>(S::k_steps, steps - from);
  };
  const auto load_queries = [&](std::int64_t i0) {
    load_tile<width>(query, queries_of, i0, tile_of(i0, g.queries));
    load_tile<width>(dy, dys_of, i0, tile_of(i0, g.queries));
    if (thread() < S::k_steps && i0 + thread() < g.queries) {
      logs[thread()] = t.log_sum_exp[item.item * g.queries + i0 + thread()];
    }
  };
  const auto load_keys = [&](std::int64_t j0) {
    load_tile<width>(key, keys_of, j0, tile_of(j0, g.keys));
    load_tile<width>(value, values_of, j0, tile_of(j0, g.keys));
    if (thread() < S::k_steps) has[thread()] = item.has(j0 + thread());
  };
  std::int64_t i0 = 0, j0 = 0;
  if (by_keys) {
    j0 = tile.remainder * S::k_steps;
    // Earlier queries see none of a causal tile.
    i0 = g.causal ? j0 : 0;
    load_keys(j0);
  } else {
    i0 = (tile.remainder - t.key_tiles) * S::k_steps;
    load_queries(i0);
  }
  const std::int64_t end = by_keys ? g.queries : g.seen(i0 + tile_of(i0, g.queries) - 1);
  KeptWeights<T> kept(a);
  // By keys the gradients of both; by queries the first is that of the query.
  TileSums<width> first, second;
  const int queries_on = by_keys ? S::k_steps : 0, keys_on = S::k_steps - queries_on;
  for (; (by_keys ? i0 : j0) < end; i0 += queries_on, j0 += keys_on) {
    if (by_keys) {
      load_queries(i0);
    } else {
      load_keys(j0);
    }
    sync_block();
    multiply_rows<width>(query, key, channels, [&](int i, int j, float score) {
      weights[i * S::k_score_stride + j] = score;
    });
    multiply_rows<width>(dy, value, value_channels, [&](int i, int j, float score) {
      gradients[i * S::k_score_stride + j] = score;
    });
    float mean = 0;
    for (int c = S::lane(); i0 + row < g.queries && c < g.value_depth; c += S::k_lanes) {
      mean = std::fma(load(results_of.row(i0 + row)[c]), dy[row * S::k_stride + c], mean);
    }
    means[thread()] = mean;
    sync_block();
    mean = 0;
    for (int i = 0; i < S::k_lanes; ++i) mean += means[row * S::k_lanes + i];
    for (int j = column; j < column + S::k_columns; ++j) {
      const int score = row * S::k_score_stride + j;
      float weight = 0, gradient = 0;
      if (has[j] && item.sees(i0 + row, j0 + j)) {
        const float factor = kept(g.weight(item.item, i0 + row, j0 + j));
        weight = std::exp(a.scale * weights[score] - logs[row]);
        gradient = a.scale * weight * (factor * gradients[score] - mean);
        weight *= factor;
      }
      weights[score] = weight;
      gradients[score] = gradient;
    }
    sync_block();
    if (by_keys) {
      const std::int64_t queries = tile_of(i0, g.queries);
      first.add_transposed(gradients, query, queries);
      second.add_transposed(weights, dy, queries);
    } else {
      first.add(gradients, key, tile_of(j0, g.keys));
    }
    sync_block();
  }
  const auto as_it_is = [](int, float x) { return x; };
  const auto dqueries_of = item.rows(t.dquery, g.queries, g.depth);
  if (!by_keys) {
    first.store_rows(dqueries_of, i0, tile_of(i0, g.queries), as_it_is);
    return;
  }
  const std::int64_t keys = tile_of(j0, g.keys);
  first.store_rows(item.rows(t.dkey, g.keys, g.depth), j0, keys, as_it_is);
  second.store_rows(item.rows(t.dvalue, g.keys, g.value_depth), j0, keys, as_it_is);
  if (!t.single || g.queries == 0) return;
  TileSums<width> of_query;
  of_query.add(gradients, key, keys);
  of_query.store_rows(dqueries_of, 0, g.queries, as_it_is);
}

}  // namespace

void attention_grad(Stream stream, const AttentionGradParams& p) {
  const AttentionInputs& in = p.inputs;
  dispatch_attention(in, [&]<class T, int width>(Type<T>, TileWidth<width>) {
    Gradients<T> gradients{.dy = static_cast<const T*>(p.dy),
                           .result = static_cast<const T*>(p.result),
                           .log_sum_exp = p.log_sum_exp,
                           .dquery = static_cast<T*>(p.dquery),
                           .dkey = static_cast<T*>(p.dkey),
                           .dvalue = static_cast<T*>(p.dvalue),
                           .key_tiles = tiles_of<width>(in.geometry.keys),
                           .query_tiles = tiles_of<width>(in.geometry.queries),
                           .single = false};
    gradients.single = gradients.key_tiles == 1 && gradients.query_tiles <= 1;
    const std::int64_t tiles = gradients.single ? 1 : gradients.key_tiles + gradients.query_tiles;
    launch(attention_grad_kernel<T, width>,
           grid_of_tiles(in.geometry.items() * tiles),
           stream,
           attention_of<T>(
               in, {in.query, in.key, in.value, p.dy, p.result, p.dquery, p.dkey, p.dvalue}),
           gradients);
  });
}

}  // namespace halfstep::backend::cuda::kernels
