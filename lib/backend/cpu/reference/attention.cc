// FusedAttention and FusedAttentionGrad (graph/ops/attention.cc) query by query, all arithmetic in
// double, one rounding on store. Bit-identical for every number of threads.

#include "graph/ops/attention.h"

#include <cmath>
#include <limits>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "core/philox.h"

namespace halfstep::backend::cpu {
namespace {

using graph::ops::AttentionDropout;
using graph::ops::AttentionGeometry;

/// The rows of one head of one sample.
template <class T>
struct ItemRows {
  T* first;
  std::int64_t stride;

  ItemRows(T* data,
           const AttentionGeometry& g,
           std::int64_t item,
           std::int64_t steps,
           std::int64_t width)
      : first(data + g.first(item, steps, width)), stride(g.stride(width)) {}
  T* operator[](std::int64_t i) const { return first + i * stride; }
};

/// The dropout factor of attention weight `w`; `ordinal`: null without dropout.
double kept(const AttentionDropout& dropout, const std::int64_t* ordinal, std::int64_t w) {
  if (ordinal == nullptr) return 1;
  const auto i = static_cast<std::uint64_t>(dropout.first + w);
  const auto words =
      random_words(dropout.seed, mix(dropout.stream, static_cast<std::uint64_t>(*ordinal)), i / 4);
  return to_uniform(words[i % 4]) >= static_cast<float>(dropout.rate) ? dropout.scale() : 0;
}

/// Whether query `i` attends to key `j`; `taken`: null without a mask.
bool sees(const AttentionGeometry& g,
          const bool* taken,
          std::int64_t item,
          std::int64_t i,
          std::int64_t j) {
  return j < g.seen(i) && (taken == nullptr || taken[item / g.heads * g.keys + j]);
}

template <class T>
double dot(const T* a, const T* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += load_sum(a[i]) * load_sum(b[i]);
  return sum;
}

/// A loop over items; scratch of item `i` is at workspace + i * doubles.
template <class F>
Prepared for_items(const AttentionGeometry& g, std::int64_t doubles, const F& body) {
  const std::int64_t cost = g.queries * g.keys * (g.depth + g.value_depth);
  return launch(
      [=](const Args& args) {
        auto* scratch = reinterpret_cast<double*>(args.workspace);
        parallel_for_each(g.items(), 1 + k_grain / (1 + cost), [&](std::int64_t i) {
          body(args, i, scratch + i * doubles);
        });
      },
      static_cast<std::size_t>(g.items() * doubles) * sizeof(double));
}

Prepared prepare_attention(const NodeView& node, const Capabilities&) {
  const AttentionGeometry g = graph::ops::attention_geometry(
      node.attrs(), node.input(0).shape, node.input(1).shape, node.input(2).shape);
  const AttentionDropout dropout(node.attrs());
  return dispatch_with_sums(
      node.input(0).dtype, node.output(1).dtype, [&]<class T, class U>(Type<T>, Type<U>) {
        return for_items(
            g,
            g.keys + g.value_depth,
            [g, dropout](const Args& args, std::int64_t item, double* weights) {
              const ItemRows<const T> query(args.in[0].as<T>(), g, item, g.queries, g.depth);
              const ItemRows<const T> key(args.in[1].as<T>(), g, item, g.keys, g.depth);
              const ItemRows<const T> value(args.in[2].as<T>(), g, item, g.keys, g.value_depth);
              const ItemRows<T> result(args.out[0].as<T>(), g, item, g.queries, g.value_depth);
              const std::int64_t* ordinal =
                  dropout.rate > 0 ? args.in[3].as<std::int64_t>() : nullptr;
              const bool* taken = args.in.size() > 4 ? args.in[4].as<bool>() : nullptr;
              double* sums = weights + g.keys;
              for (std::int64_t i = 0; i < g.queries; ++i) {
                double largest = -std::numeric_limits<double>::infinity(), sum = 0;
                for (std::int64_t j = 0; j < g.keys; ++j) {
                  if (!sees(g, taken, item, i, j)) continue;
                  weights[j] = g.scale * dot(query[i], key[j], g.depth);
                  largest = weights[j] > largest ? weights[j] : largest;
                }
                std::fill_n(sums, g.value_depth, 0.0);
                bool any = false;
                for (std::int64_t j = 0; j < g.keys; ++j) {
                  if (!sees(g, taken, item, i, j)) continue;
                  any = true;
                  const double weight = std::exp(weights[j] - largest);
                  sum += weight;
                  const double used = weight * kept(dropout, ordinal, g.weight(item, i, j));
                  for (std::int64_t c = 0; c < g.value_depth; ++c) {
                    sums[c] += used * load_sum(value[j][c]);
                  }
                }
                for (std::int64_t c = 0; c < g.value_depth; ++c) {
                  result[i][c] = store<T>(any ? sums[c] / sum : 0);
                }
                args.out[1].as<U>()[item * g.queries + i] = store<U>(largest + std::log(sum));
              }
            });
      });
}

Prepared prepare_attention_grad(const NodeView& node, const Capabilities&) {
  const AttentionGeometry g = graph::ops::attention_geometry(
      node.attrs(), node.input(1).shape, node.input(2).shape, node.input(3).shape);
  const AttentionDropout dropout(node.attrs());
  const std::int64_t of_keys = g.keys * (g.depth + g.value_depth);
  return dispatch_with_sums(
      node.input(0).dtype, node.input(5).dtype, [&]<class T, class U>(Type<T>, Type<U>) {
        return for_items(
            g,
            of_keys + g.depth,
            [g, dropout, of_keys](const Args& args, std::int64_t item, double* scratch) {
              const ItemRows<const T> dy(args.in[0].as<T>(), g, item, g.queries, g.value_depth);
              const ItemRows<const T> query(args.in[1].as<T>(), g, item, g.queries, g.depth);
              const ItemRows<const T> key(args.in[2].as<T>(), g, item, g.keys, g.depth);
              const ItemRows<const T> value(args.in[3].as<T>(), g, item, g.keys, g.value_depth);
              const ItemRows<const T> result(args.in[4].as<T>(), g, item, g.queries, g.value_depth);
              const ItemRows<T> dquery(args.out[0].as<T>(), g, item, g.queries, g.depth);
              const ItemRows<T> dkey(args.out[1].as<T>(), g, item, g.keys, g.depth);
              const ItemRows<T> dvalue(args.out[2].as<T>(), g, item, g.keys, g.value_depth);
              const std::int64_t* ordinal =
                  dropout.rate > 0 ? args.in[6].as<std::int64_t>() : nullptr;
              const bool* taken = args.in.size() > 7 ? args.in[7].as<bool>() : nullptr;
              double *of_key = scratch, *of_value = of_key + g.keys * g.depth,
                     *of_query = scratch + of_keys;
              std::fill_n(scratch, of_keys, 0.0);
              for (std::int64_t i = 0; i < g.queries; ++i) {
                const double log_sum = load_sum(args.in[5].as<U>()[item * g.queries + i]);
                const double mean = dot(dy[i], result[i], g.value_depth);
                std::fill_n(of_query, g.depth, 0.0);
                for (std::int64_t j = 0; j < g.keys; ++j) {
                  if (!sees(g, taken, item, i, j)) continue;
                  const double weight =
                      std::exp(g.scale * dot(query[i], key[j], g.depth) - log_sum);
                  const double factor = kept(dropout, ordinal, g.weight(item, i, j));
                  const double dw = factor * dot(dy[i], value[j], g.value_depth);
                  const double ds = g.scale * weight * (dw - mean);
                  for (std::int64_t c = 0; c < g.depth; ++c) {
                    of_query[c] += ds * load_sum(key[j][c]);
                    of_key[j * g.depth + c] += ds * load_sum(query[i][c]);
                  }
                  for (std::int64_t c = 0; c < g.value_depth; ++c) {
                    of_value[j * g.value_depth + c] += factor * weight * load_sum(dy[i][c]);
                  }
                }
                for (std::int64_t c = 0; c < g.depth; ++c) dquery[i][c] = store<T>(of_query[c]);
              }
              for (std::int64_t j = 0; j < g.keys; ++j) {
                for (std::int64_t c = 0; c < g.depth; ++c) {
                  dkey[j][c] = store<T>(of_key[j * g.depth + c]);
                }
                for (std::int64_t c = 0; c < g.value_depth; ++c) {
                  dvalue[j][c] = store<T>(of_value[j * g.value_depth + c]);
                }
              }
            });
      });
}

}  // namespace

std::vector<Kernel> attention_reference_kernels() {
  return {
      {"FusedAttention", "reference/attention", executable, prepare_attention},
      {"FusedAttentionGrad", "reference/attention_grad", executable, prepare_attention_grad},
  };
}

}  // namespace halfstep::backend::cpu
