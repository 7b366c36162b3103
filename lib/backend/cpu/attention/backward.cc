// FusedAttentionGrad (graph/ops/attention.cc): for 32 keys at a time the transposed scores of
// chunks of queries are recomputed, and their weights and gradients are multiplied while they are
// in the caches. Bit-identical for every number of threads, since one thread computes an item.

#include "backend/cpu/attention/items.h"

namespace halfstep::backend::cpu::attention {
namespace {

class Backward {
 public:
  Backward(const NodeView& node,
           const Capabilities& capabilities,
           const packed::HalfMicroKernel& half)
      : g_(graph::ops::attention_geometry(
            node.attrs(), node.input(1).shape, node.input(2).shape, node.input(3).shape)),
        dropout_(node, g_, 6),
        mask_(node, g_, 7),
        math_(capabilities.isa, node.input(0).dtype),
        gemm_(capabilities.isa, node.input(0).dtype, half),
        parts_(std::clamp<I64>(g_.items(), 1, capabilities.threads)) {
    WorkspaceLayout part;
    const auto operand = [&](I64 rows, I64 depth) {
      PackedOperand o{gemm_.layout(rows, depth), 0};
      o.offset = part.reserve(o.layout.bytes());
      return o;
    };
    const auto floats = [&](I64 count) { return part.reserve(count * k_float); };
    key_rows_ = operand(k_block_size, g_.depth);
    key_columns_ = operand(g_.depth, k_block_size);
    value_rows_ = operand(k_block_size, g_.value_depth);
    query_columns_ = operand(g_.queries, g_.depth);
    query_depth_ = operand(g_.depth, g_.queries);
    dy_columns_ = operand(g_.queries, g_.value_depth);
    dy_depth_ = operand(g_.value_depth, g_.queries);
    const PanelLayout& by_queries = query_depth_.layout;
    const I64 blocks = std::min(by_queries.k_blocks_per_kc(), by_queries.k_blocks());
    scores_ = floats(blocks * k_block_floats);
    dweights_ = floats(blocks * k_block_floats);
    chunk_ = part.reserve(blocks * by_queries.k_block_bytes());
    transposed_ = part.reserve(by_queries.k_block_bytes());
    dquery_ = floats(by_queries.k_blocks() * by_queries.panels() * k_block_floats);
    dkey_ = floats(by_queries.panels() * k_block_floats);
    dvalue_ = floats(dy_depth_.layout.panels() * k_block_floats);
    scratch_ = floats((2 + blocks) * k_block_floats);
    log_sums_ = floats(by_queries.k_blocks() * k_block_size);
    means_ = floats(by_queries.k_blocks() * k_block_size);
    rows_ = floats(3 * g_.value_depth);
    if (dropout_) factors_ = floats(blocks * k_block_floats);
    flags_ = floats(mask_.flags());
    part_bytes_ = part.bytes();
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(parts_ * part_bytes_); }

  void run(const Args& args) const {
    for_each_unit(
        gemm_, g_.items(), parts_, part_bytes_, args, [&](I64 item, const PartMemory& memory) {
          Item{*this, args, memory, item}.run();
        });
  }

 private:
  /// An item, and the memory of the thread that computes it.
  struct Item {
    const Backward& f;
    const Args& args;
    const PartMemory& memory;
    I64 item;

    const AttentionGeometry& g = f.g_;
    const UnmaskedKeys unmasked = f.mask_.of_item(args, item, memory.at<float>(f.flags_));
    const TensorView &dy = args.in[0], &query = args.in[1], &key = args.in[2], &value = args.in[3];
    Rows query_rows = rows_of(g, item, g.queries, g.depth);
    Rows key_rows = rows_of(g, item, g.keys, g.depth);
    Rows value_rows = rows_of(g, item, g.keys, g.value_depth);
    Rows dy_rows = rows_of(g, item, g.queries, g.value_depth);

    void run() const {
      memory.pack(Operand::b, Order::along_depth, query, query_rows, f.query_columns_);
      memory.pack(Operand::b, Order::across_depth, query, query_rows, f.query_depth_);
      memory.pack(Operand::b, Order::along_depth, dy, dy_rows, f.dy_columns_);
      memory.pack(Operand::b, Order::across_depth, dy, dy_rows, f.dy_depth_);
      for (I64 i = 0; i < g.queries; ++i) set_row_statistics(i);
      // Without a mask the first panel of keys sets dquery; with one that panel may be skipped.
      if (unmasked.flags != nullptr) {
        const PanelLayout& by_queries = f.query_depth_.layout;
        const I64 blocks = by_queries.k_blocks() * by_queries.panels();
        std::fill_n(memory.at<float>(f.dquery_), blocks * k_block_floats, 0.0F);
      }
      for (I64 first = 0; first < g.keys; first += k_block_size) {
        run_keys(first, std::min(k_block_size, g.keys - first));
      }
      for (I64 first = 0; first < g.queries; first += k_block_size) {
        store(f.dquery_ + first / k_block_size * panels_of(g.depth) * k_block_floats * k_float,
              std::min(k_block_size, g.queries - first),
              g.depth,
              args.out[0],
              query_rows.from(first));
      }
    }

    /// Sets the log-sum-exp of a query, and the dot product of dy and the result, which is the
    /// weighted mean of the gradient of its weights.
    void set_row_statistics(I64 i) const {
      auto *left = memory.at<float>(f.rows_), *right = left + g.value_depth,
           *terms = right + g.value_depth;
      const float* in[] = {f.math_.source.read(dy.data, dy_rows[i], g.value_depth, left),
                           f.math_.source.read(args.in[4].data, dy_rows[i], g.value_depth, right)};
      f.math_.mul(terms, in, g.value_depth, 0);
      memory.at<float>(f.means_)[i] = f.math_.sum(terms, g.value_depth);
      memory.at<float>(f.log_sums_)[i] = args.in[5].as<float>()[item * g.queries + i];
    }

    /// Computes the gradients of `rows` keys and their values, and adds to the gradients of
    /// queries.
    void run_keys(I64 first, I64 rows) const {
      const I64 panels = panels_of(g.queries);
      I64 begin = g.causal ? std::min(first / k_block_size, panels) : 0;
      if (!unmasked.any(first, rows)) begin = panels;
      PackedOperand operands[] = {f.key_rows_, f.value_rows_, f.key_columns_};
      operands[0].layout.rows = operands[1].layout.rows = operands[2].layout.depth = rows;
      memory.pack(Operand::a, Order::along_depth, key, key_rows.from(first), operands[0]);
      memory.pack(Operand::a, Order::along_depth, value, value_rows.from(first), operands[1]);
      memory.pack(Operand::b, Order::across_depth, key, key_rows.from(first), operands[2]);
      // A chunk is a kc block of the matmuls whose reduction axis is that of the queries.
      const I64 chunk = f.query_depth_.layout.k_blocks_per_kc();
      for (I64 panel = begin; panel < panels;) {
        const I64 end = std::min(panels, (panel / chunk + 1) * chunk);
        multiply(f.key_rows_, f.query_columns_, panel, end - panel, f.scores_);
        multiply(f.value_rows_, f.dy_columns_, panel, end - panel, f.dweights_);
        const I64 at = panel * k_block_size;
        const I64 columns = std::min(end * k_block_size, g.queries) - at;
        if (f.dropout_) {
          set_factors(first, rows, at, columns);
          drop(f.dweights_, end - panel);
        }
        f.math_.loops.attention_grad({.scores = memory.at<float>(f.scores_),
                                      .rows = rows,
                                      .columns = columns,
                                      .first = g.causal ? first - at : 0,
                                      .step = g.causal ? 1 : 0,
                                      .scale = static_cast<float>(g.scale),
                                      .key_mask = unmasked.from(first)},
                                     memory.at<float>(f.dweights_),
                                     memory.at<float>(f.log_sums_) + at,
                                     memory.at<float>(f.means_) + at);
        if (f.dropout_) drop(f.scores_, end - panel);
        add_rows(f.scores_, f.dy_depth_, panel, end - panel, panel == begin, f.dvalue_);
        add_rows(f.dweights_, f.query_depth_, panel, end - panel, panel == begin, f.dkey_);
        const bool sets = first == 0 && unmasked.flags == nullptr;
        for (I64 i = panel; i < end; ++i) add_query(i, i - panel, sets);
        panel = end;
      }
      if (begin == panels) {
        std::fill_n(memory.at<float>(f.dkey_), panels_of(g.depth) * k_block_floats, 0.0F);
        std::fill_n(memory.at<float>(f.dvalue_), panels_of(g.value_depth) * k_block_floats, 0.0F);
      }
      store(f.dkey_, rows, g.depth, args.out[1], key_rows.from(first));
      store(f.dvalue_, rows, g.value_depth, args.out[2], value_rows.from(first));
    }

    /// The factors of `rows` keys in transposed blocks of `count` queries.
    void set_factors(I64 first, I64 rows, I64 at, I64 count) const {
      auto* factors = memory.at<float>(f.factors_);
      for (I64 q = 0; q < count; q += k_block_size, factors += k_block_floats) {
        f.dropout_.block(f.math_.loops,
                         args,
                         {item, at + q, first, std::min(k_block_size, count - q), rows},
                         true,
                         factors);
      }
    }

    /// Multiplies `count` blocks by the factors.
    void drop(I64 blocks, I64 count) const {
      auto* x = memory.at<float>(blocks);
      const float* terms[] = {x, memory.at<float>(f.factors_)};
      f.math_.mul(x, terms, count * k_block_floats, 0);
    }

    /// Blocks of a panel of keys times panels of queries or of dy.
    void multiply(
        const PackedOperand& a, const PackedOperand& b, I64 panel, I64 count, I64 to) const {
      f.gemm_.multiply(memory.at(a.offset),
                       memory.at(b.offset),
                       b.layout,
                       panel,
                       count,
                       memory.at<float>(f.scratch_),
                       {copy_block, memory.at<float>(to)});
    }

    /// accumulators += x b for the blocks x of a panel of keys and `count` panels of queries.
    void add_rows(
        I64 x, const PackedOperand& b, I64 panel, I64 count, bool first, I64 accumulators) const {
      const I64 k_block_bytes = b.layout.k_block_bytes();
      std::byte* a = memory.at(x);
      if (!f.gemm_.is_float32()) {
        a = memory.at(f.chunk_);
        for (I64 i = 0; i < count; ++i) {
          pack_block(Order::along_depth, x + i * k_block_floats * k_float, a + i * k_block_bytes);
        }
      }
      const I64 chunk = b.layout.k_blocks_per_kc();
      for (I64 i = 0; i < b.layout.panels(); ++i) {
        const I64 at = b.layout.panel_offset(panel / chunk, i) + panel % chunk * k_block_bytes;
        accumulate(a,
                   memory.at(b.offset + at),
                   count,
                   1,
                   first,
                   accumulators + i * k_block_floats * k_float);
      }
    }

    /// Adds block `i` of the gradients of scores times the panel of keys to a panel of queries.
    void add_query(I64 panel, I64 i, bool first) const {
      const PackedOperand& b = f.key_columns_;
      pack_block(Order::across_depth,
                 f.dweights_ + i * k_block_floats * k_float,
                 memory.at(f.transposed_));
      accumulate(memory.at(f.transposed_),
                 memory.at(b.offset),
                 1,
                 b.layout.panels(),
                 first,
                 f.dquery_ + panel * b.layout.panels() * k_block_floats * k_float);
    }

    void pack_block(Order order, I64 x, std::byte* to) const {
      f.gemm_.pack(Operand::a, order, memory.at<float>(x), to);
    }

    /// Adds to the accumulators of `blocks` blocks, or sets them if `first`.
    void accumulate(const std::byte* a,
                    const std::byte* b,
                    I64 k_blocks,
                    I64 blocks,
                    bool first,
                    I64 accumulators) const {
      f.gemm_.run({.a = a,
                   .b = b,
                   .k_blocks = k_blocks,
                   .blocks = blocks,
                   .accumulators = memory.at<float>(accumulators),
                   .first = first,
                   .last = false,
                   .scratch = nullptr,
                   .epilogue = nullptr,
                   .context = nullptr});
    }

    /// Rounds and stores the accumulators of `rows` rows of `width` values.
    void store(I64 accumulators, I64 rows, I64 width, const TensorView& to, const Rows& at) const {
      float block[k_block_floats];
      for (I64 c = 0; c < width; c += k_block_size) {
        packed::copy_accumulators(
            memory.at<float>(accumulators) + c / k_block_size * k_block_floats,
            rows,
            k_block_size,
            block);
        for (I64 r = 0; r < rows; ++r) {
          f.math_.sink.write(
              to.data, at[r] + c, std::min(k_block_size, width - c), block + r * k_block_size);
        }
      }
    }
  };

  AttentionGeometry g_;
  WeightFactors dropout_;
  KeyMask mask_;
  RowMath math_;
  packed::PanelGemm gemm_;
  I64 parts_;
  // Packed operands. A panel of keys: with keys as rows, and as the reduction axis. All queries and
  // all dy: with queries as columns, and as the reduction axis.
  PackedOperand key_rows_, key_columns_, value_rows_;
  PackedOperand query_columns_, query_depth_, dy_columns_, dy_depth_;
  // Offsets in the memory of a part.
  I64 scores_, dweights_, chunk_, transposed_, dquery_, dkey_, dvalue_, scratch_;
  I64 log_sums_, means_, rows_, factors_ = 0, flags_, part_bytes_;
};

}  // namespace

Prepared prepare_backward(const NodeView& node,
                          const Capabilities& capabilities,
                          const packed::HalfMicroKernel& half) {
  const Backward backward(node, capabilities, half);
  return launch([backward](const Args& args) { backward.run(args); }, backward.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::attention
