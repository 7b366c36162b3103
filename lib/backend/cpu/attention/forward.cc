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
        gemm_(capabilities.isa, node.input(0).dtype, half),
        query_{gemm_.layout(k_block_size, g_.depth)},
        key_{gemm_.layout(g_.keys, g_.depth)},
        value_{gemm_.layout(g_.value_depth, g_.keys)} {
    // If there are fewer items than threads, several threads compute queries of one item.
    const I64 wanted = g_.items() > 0 ? divide_up(capabilities.threads, g_.items()) : 1;
    splits_ = std::clamp<I64>(wanted, 1, std::max<I64>(1, panels_of(g_.queries)));
    parts_ = std::clamp<I64>(g_.items() * splits_, 1, capabilities.threads);
    const I64 blocks = std::min(value_.layout.k_blocks_per_kc(), value_.layout.k_blocks());
    WorkspaceLayout part;
    for (PackedOperand* o : {&query_, &key_, &value_}) o->offset = part.reserve(o->layout.bytes());
    scores_ = part.reserve(blocks * k_block_floats * k_float);
    if (!gemm_.is_float32()) weights_ = part.reserve(blocks * value_.layout.k_block_bytes());
    result_ = part.reserve(value_.layout.panels() * k_block_floats * k_float);
    scratch_ =
        part.reserve((2 + (key_.layout.kc_blocks() > 1 ? blocks : 0)) * k_block_floats * k_float);
    if (dropout_) factors_ = part.reserve(k_block_floats * k_float);
    flags_ = part.reserve(mask_.flags() * k_float);
    part_bytes_ = part.bytes();
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(parts_ * part_bytes_); }

  void run(const Args& args) const {
    const I64 panels = panels_of(g_.queries);
    for_each_unit(gemm_,
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
    const UnmaskedKeys unmasked = f.mask_.of_item(args, item, memory.at<float>(f.flags_));

    /// Computes the queries of panels [begin, end).
    void run(I64 begin, I64 end) const {
      const Rows keys = rows_of(g, item, g.keys, g.depth);
      const Rows values = rows_of(g, item, g.keys, g.value_depth);
      memory.pack(Operand::b, Order::along_depth, args.in[1], keys, f.key_);
      memory.pack(Operand::b, Order::across_depth, args.in[2], values, f.value_);
      for (I64 panel = begin; panel < end; ++panel) {
        run_panel(panel * k_block_size, std::min(k_block_size, g.queries - panel * k_block_size));
      }
    }

    void run_panel(I64 query, I64 rows) const {
      PackedOperand panel = f.query_;
      panel.layout.rows = rows;
      const Rows queries = rows_of(g, item, g.queries, g.depth).from(query);
      memory.pack(Operand::a, Order::along_depth, args.in[0], queries, panel);

      float row_max[k_block_size], sums[k_block_size], factors[k_block_size];
      std::fill_n(row_max, k_block_size, -std::numeric_limits<float>::infinity());
      std::fill_n(sums, k_block_size, 0.0F);
      const I64 seen = std::min(g.seen(query + rows - 1), unmasked.end);
      const I64 chunk_keys = f.value_.layout.k_blocks_per_kc() * k_block_size;
      const I64 begin = unmasked.begin / chunk_keys * chunk_keys;
      for (I64 key = begin; key < seen; key += chunk_keys) {
        const I64 keys = std::min(chunk_keys, seen - key);
        multiply_scores(key, keys);
        f.math_.loops.attention_weights({.scores = memory.at<float>(f.scores_),
                                         .rows = rows,
                                         .columns = keys,
                                         .first = g.causal ? query + 1 - key : keys,
                                         .step = g.causal ? 1 : 0,
                                         .scale = static_cast<float>(g.scale),
                                         .key_mask = unmasked.from(key)},
                                        row_max,
                                        sums,
                                        factors);
        if (f.dropout_) drop(query, rows, key, keys);
        multiply_values(key / chunk_keys, panels_of(keys), key == begin ? nullptr : factors);
      }
      store(query, rows, row_max, sums);
    }

    /// Multiplies the weights of a chunk by the factors of their dropout.
    void drop(I64 query, I64 rows, I64 key, I64 keys) const {
      auto *factors = memory.at<float>(f.factors_), *weights = memory.at<float>(f.scores_);
      for (I64 i = 0; i < keys; i += k_block_size, weights += k_block_floats) {
        f.dropout_.block(f.math_.loops,
                         args,
                         {item, query, key + i, rows, std::min(k_block_size, keys - i)},
                         false,
                         factors);
        const float* terms[] = {weights, factors};
        f.math_.mul(weights, terms, k_block_floats, 0);
      }
    }

    void multiply_scores(I64 key, I64 keys) const {
      f.gemm_.multiply(memory.at(f.query_.offset),
                       memory.at(f.key_.offset),
                       f.key_.layout,
                       key / k_block_size,
                       panels_of(keys),
                       memory.at<float>(f.scratch_),
                       {copy_block, memory.at<float>(f.scores_)});
    }

    /// A block of results, which is multiplied by a factor per row before a chunk is added.
    struct RescaledBlock {
      float* to;
      const float* factors;
    };
    static void add_block(void* context, const float* accumulators, I64) {
      const RescaledBlock& s = *static_cast<const RescaledBlock*>(context);
      for (I64 r = 0; r < k_block_size; ++r) {
        const float* left = accumulators + r / 16 * 512 + r % 16 * 16;
        float* to = s.to + r * k_block_size;
        for (I64 c = 0; c < k_block_size; ++c) {
          to[c] = to[c] * s.factors[r] + left[c / 16 * 256 + c % 16];
        }
      }
    }

    /// Adds the weights of a chunk times its values; `factors`: null for the first chunk.
    void multiply_values(I64 chunk, I64 k_blocks, const float* factors) const {
      std::byte* weights = memory.at(f.scores_);
      if (!f.gemm_.is_float32()) {
        weights = memory.at(f.weights_);
        for (I64 i = 0; i < k_blocks; ++i) {
          f.gemm_.pack(Operand::a,
                       Order::along_depth,
                       memory.at<float>(f.scores_) + i * k_block_floats,
                       weights + i * f.value_.layout.k_block_bytes());
        }
      }
      for (I64 panel = 0; panel < f.value_.layout.panels(); ++panel) {
        RescaledBlock block{memory.at<float>(f.result_) + panel * k_block_floats, factors};
        f.gemm_.run({.a = weights,
                     .b = memory.at(f.value_.offset + f.value_.layout.panel_offset(chunk, panel)),
                     .k_blocks = k_blocks,
                     .blocks = 1,
                     .accumulators = nullptr,
                     .first = true,
                     .last = true,
                     .scratch = memory.at<float>(f.scratch_),
                     .epilogue = factors == nullptr ? copy_block : add_block,
                     .context = factors == nullptr ? static_cast<void*>(block.to) : &block});
      }
    }

    void store(I64 query, I64 rows, const float* row_max, const float* sums) const {
      const Rows result = rows_of(g, item, g.queries, g.value_depth);
      float scaled[k_block_size];
      for (I64 r = 0; r < rows; ++r) {
        const bool sees = unmasked.begin < g.seen(query + r);
        for (I64 c = 0; c < g.value_depth; c += k_block_size) {
          const I64 n = std::min(k_block_size, g.value_depth - c);
          const float* row =
              memory.at<float>(f.result_) + c / k_block_size * k_block_floats + r * k_block_size;
          if (sees) {
            f.math_.loops.scale_float32(scaled, row, 1 / sums[r], n);
          } else {
            std::fill_n(scaled, n, 0.0F);
          }
          f.math_.sink.write(args.out[0].data, result[query + r] + c, n, scaled);
        }
      }
      float logs[k_block_size];
      f.math_.log(logs, &sums, rows, 0);
      const float* terms[] = {row_max, logs};
      f.math_.add(args.out[1].as<float>() + item * g.queries + query, terms, rows, 0);
    }
  };

  AttentionGeometry g_;
  WeightFactors dropout_;
  KeyMask mask_;
  RowMath math_;
  packed::PanelGemm gemm_;
  PackedOperand query_, key_, value_;
  I64 splits_ = 1, parts_ = 1;
  // Offsets in the memory of a part.
  I64 scores_, weights_ = 0, result_, scratch_, factors_ = 0, flags_, part_bytes_;
};

}  // namespace

Prepared prepare_forward(const NodeView& node,
                         const Capabilities& capabilities,
                         const packed::HalfMicroKernel& half) {
  const Forward forward(node, capabilities, half);
  return launch([forward](const Args& args) { forward.run(args); }, forward.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::attention
