// FusedAttention (graph/ops/attention.cc): 32 queries at a time over chunks of keys, with weights
// relative to the largest score so far (online softmax, Milakov and Gimelshein 2018). Bit-identical
// for every number of threads.

#include <limits>

#include "backend/cpu/attention/items.h"

namespace halfstep::backend::cpu::attention {
namespace {

class Forward {
 public:
  Forward(const NodeView& node,
          const Capabilities& capabilities,
          const packed::HalfMicroKernel& half)
      : g_(graph::ops::attention_geometry(
            node.attrs(), node.input(0).shape, node.input(1).shape, node.input(2).shape)),
        dropout_(node, g_, 3),
        mask_(node, g_, 4),
        math_(capabilities.isa, node.input(0).dtype),
        unit_(capabilities.isa, node.input(0).dtype, half),
        query_(unit_.layout(k_block, g_.depth)),
        key_(unit_.layout(g_.keys, g_.depth)),
        value_(unit_.layout(g_.value_depth, g_.keys)) {
    // Where there are fewer items than threads, several threads take queries of one item.
    const I64 wanted = g_.items() > 0 ? divide_up(capabilities.threads, g_.items()) : 1;
    splits_ = std::clamp<I64>(wanted, 1, std::max<I64>(1, panels_of(g_.queries)));
    parts_ = std::clamp<I64>(g_.items() * splits_, 1, capabilities.threads);
    const I64 blocks = std::min(value_.kc_steps(), value_.steps());
    WorkspaceLayout part;
    query_at_ = part.reserve(query_.bytes());
    key_at_ = part.reserve(key_.bytes());
    value_at_ = part.reserve(value_.bytes());
    scores_ = part.reserve(blocks * k_block_floats * k_float);
    if (!unit_.is_wide()) weights_ = part.reserve(blocks * value_.step_bytes());
    sums_ = part.reserve(value_.panels() * k_block_floats * k_float);
    scratch_ = part.reserve((2 + (key_.kc_blocks() > 1 ? blocks : 0)) * k_block_floats * k_float);
    if (dropout_) factors_ = part.reserve(k_block_floats * k_float);
    flags_ = part.reserve(mask_.flags() * k_float);
    part_bytes_ = part.bytes();
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(parts_ * part_bytes_); }

  void run(const Args& args) const {
    const I64 panels = panels_of(g_.queries);
    for_units(unit_,
              g_.items() * splits_,
              parts_,
              part_bytes_,
              args,
              [&](I64 unit, const PartMemory& memory) {
                const Item item{*this, args, memory, unit / splits_};
                const I64 split = unit % splits_;
                item.run(panels * split / splits_, panels * (split + 1) / splits_);
              });
  }

 private:
  /// An item, and the memory of the thread that computes it.
  struct Item {
    const Forward& f;
    const Args& args;
    const PartMemory& memory;
    I64 item;

    const AttentionGeometry& g = f.g_;
    const TakenKeys taken = f.mask_.of_item(args, item, memory.at<float>(f.flags_));

    /// The rows of queries of panels [begin, end).
    void run(I64 begin, I64 end) const {
      pack(f.unit_,
           Side::b,
           Run::along_depth,
           args.in[1],
           rows_of(g, item, g.keys, g.depth),
           f.key_,
           memory.at(f.key_at_));
      pack(f.unit_,
           Side::b,
           Run::across_depth,
           args.in[2],
           rows_of(g, item, g.keys, g.value_depth),
           f.value_,
           memory.at(f.value_at_));
      for (I64 panel = begin; panel < end; ++panel) {
        run_panel(panel * k_block, std::min(k_block, g.queries - panel * k_block));
      }
    }

    void run_panel(I64 query, I64 rows) const {
      PanelLayout layout = f.query_;
      layout.rows = rows;
      pack(f.unit_,
           Side::a,
           Run::along_depth,
           args.in[0],
           rows_of(g, item, g.queries, g.depth).from(query),
           layout,
           memory.at(f.query_at_));

      float largest[k_block], sums[k_block], factors[k_block];
      std::fill_n(largest, k_block, -std::numeric_limits<float>::infinity());
      std::fill_n(sums, k_block, 0.0F);
      const I64 seen = std::min(g.seen(query + rows - 1), taken.end);
      const I64 chunk_keys = f.value_.kc_steps() * k_block;
      const I64 begin = taken.begin / chunk_keys * chunk_keys;
      for (I64 key = begin; key < seen; key += chunk_keys) {
        const I64 keys = std::min(chunk_keys, seen - key);
        multiply_scores(key, keys);
        f.math_.loops.attention_weights({.scores = memory.at<float>(f.scores_),
                                         .rows = rows,
                                         .columns = keys,
                                         .first = g.causal ? query + 1 - key : keys,
                                         .step = g.causal ? 1 : 0,
                                         .scale = static_cast<float>(g.scale),
                                         .taken = taken.from(key)},
                                        largest,
                                        sums,
                                        factors);
        if (f.dropout_) drop(query, rows, key, keys);
        multiply_values(key / chunk_keys, panels_of(keys), key == begin ? nullptr : factors);
      }
      store(query, rows, largest, sums);
    }

    /// Multiplies the weights of a chunk by the factors of their dropout.
    void drop(I64 query, I64 rows, I64 key, I64 keys) const {
      auto *factors = memory.at<float>(f.factors_), *weights = memory.at<float>(f.scores_);
      for (I64 i = 0; i < keys; i += k_block, weights += k_block_floats) {
        f.dropout_.block(f.math_.loops,
                         args,
                         {item, query, key + i, rows, std::min(k_block, keys - i)},
                         false,
                         factors);
        const float* terms[] = {weights, factors};
        f.math_.mul(weights, terms, k_block_floats, 0);
      }
    }

    void multiply_scores(I64 key, I64 keys) const {
      f.unit_.multiply(memory.at(f.query_at_),
                       memory.at(f.key_at_),
                       f.key_,
                       key / k_block,
                       panels_of(keys),
                       memory.at<float>(f.scratch_),
                       {keep_block, memory.at<float>(f.scores_)});
    }

    /// The sums of a block of results: those of earlier chunks, times a factor per row, and of this
    /// one.
    struct Sums {
      float* to;
      const float* factors;
    };
    static void add_block(void* context, const float* sums, I64) {
      const Sums& s = *static_cast<const Sums*>(context);
      for (I64 r = 0; r < k_block; ++r) {
        const float* left = sums + r / 16 * 512 + r % 16 * 16;
        float* to = s.to + r * k_block;
        for (I64 c = 0; c < k_block; ++c) {
          to[c] = to[c] * s.factors[r] + left[c / 16 * 256 + c % 16];
        }
      }
    }

    /// Adds the weights of a chunk times its values; `factors`: null for the first chunk.
    void multiply_values(I64 chunk, I64 steps, const float* factors) const {
      std::byte* weights = memory.at(f.scores_);
      if (!f.unit_.is_wide()) {
        weights = memory.at(f.weights_);
        for (I64 i = 0; i < steps; ++i) {
          f.unit_.pack(Side::a,
                       Run::along_depth,
                       memory.at<float>(f.scores_) + i * k_block_floats,
                       k_block,
                       k_block,
                       k_block,
                       weights + i * f.value_.step_bytes());
        }
      }
      for (I64 panel = 0; panel < f.value_.panels(); ++panel) {
        Sums sums{memory.at<float>(f.sums_) + panel * k_block_floats, factors};
        f.unit_.sweep({.a = weights,
                       .b = memory.at(f.value_at_ + f.value_.panel_offset(chunk, panel)),
                       .steps = steps,
                       .blocks = 1,
                       .sums = nullptr,
                       .first = true,
                       .last = true,
                       .scratch = memory.at<float>(f.scratch_),
                       .finish = factors == nullptr ? keep_block : add_block,
                       .context = factors == nullptr ? static_cast<void*>(sums.to) : &sums});
      }
    }

    void store(I64 query, I64 rows, const float* largest, const float* sums) const {
      const Rows result = rows_of(g, item, g.queries, g.value_depth);
      float scaled[k_block];
      for (I64 r = 0; r < rows; ++r) {
        const bool sees = taken.begin < g.seen(query + r);
        for (I64 c = 0; c < g.value_depth; c += k_block) {
          const I64 n = std::min(k_block, g.value_depth - c);
          const float* row = memory.at<float>(f.sums_) + c / k_block * k_block_floats + r * k_block;
          if (sees) {
            f.math_.loops.scale_float32(scaled, row, 1 / sums[r], n);
          } else {
            std::fill_n(scaled, n, 0.0F);
          }
          f.math_.sink.write(args.out[0].data, result[query + r] + c, n, scaled);
        }
      }
      float logs[k_block];
      f.math_.log(logs, &sums, rows, 0);
      const float* terms[] = {largest, logs};
      f.math_.add(args.out[1].as<float>() + item * g.queries + query, terms, rows, 0);
    }
  };

  AttentionGeometry g_;
  WeightFactors dropout_;
  KeyMask mask_;
  RowMath math_;
  packed::PanelUnit unit_;
  PanelLayout query_, key_, value_;
  I64 splits_ = 1, parts_ = 1;
  // Offsets in the memory of a part.
  I64 query_at_, key_at_, value_at_, scores_, weights_ = 0, sums_, scratch_, factors_ = 0, flags_,
                                              part_bytes_;
};

}  // namespace

Prepared prepare_forward(const NodeView& node,
                         const Capabilities& capabilities,
                         const packed::HalfMicroKernel& half) {
  const Forward forward(node, capabilities, half);
  return launch([forward](const Args& args) { forward.run(args); }, forward.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::attention
