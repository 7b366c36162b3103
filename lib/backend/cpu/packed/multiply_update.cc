// PackedMatMulUpdate on a matrix unit. A row of 32 x 32 blocks of the gradient is rounded as
// PackedMatMul rounds it, into a buffer that stays in a cache, and applied from there as
// FusedUpdate applies it: bit-identical to both ops, but the gradient never goes through memory.
//
// The update of a row of blocks is interleaved with the multiplication of the next one: after each
// complete block a few rows of elements are updated, whose weights and slots were prefetched one
// block earlier.

#include <algorithm>
#include <vector>

#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/product.h"
#include "backend/cpu/vector/update.h"

namespace halfstep::backend::cpu::packed {
namespace {

using vector::FusedUpdate;

constexpr std::int64_t k_rounded_bytes = 2;

class ProductUpdate {
 public:
  ProductUpdate(const NodeView& node, const MicroKernel& unit, const Capabilities& capabilities)
      : ports_(graph::ops::fused_update_ports(node.node)),
        m_(node.attrs().get<std::int64_t>("m")),
        n_(node.attrs().get<std::int64_t>("n")),
        product_(product_of(node.attrs(), unit, capabilities.threads, Product::Tiles::square)),
        update_(node, {node.attrs().get<DType>("T"), {m_, n_}}, capabilities),
        finish_(blocks(capabilities.isa).of(graph::ops::operand_format(node.attrs())).finish),
        buffer_bytes_(product_.run_panels() * k_block * k_block * k_rounded_bytes),
        waiting_(static_cast<std::size_t>(product_.parts())) {}

  std::size_t workspace_bytes() const { return buffers_bytes() + product_.workspace_bytes(); }

  void operator()(const Args& args) {
    const FusedUpdate::Step step = update_.step(args);
    std::fill(waiting_.begin(), waiting_.end(), Waiting{});
    product_.run(
        args.in[ports_.rule.gradient].as<std::byte>(),
        args.in[ports_.packed_end].as<std::byte>(),
        args.workspace + buffers_bytes(),
        [&](const float* sums, const Product::Place& at) { finish(step, sums, at); },
        [&](std::int64_t part) {
          Waiting& waiting = waiting_[static_cast<std::size_t>(part)];
          apply(step, waiting, waiting.rows);
        });
  }

 private:
  /// A rounded row of blocks of the gradient, of which the first `done` rows have been applied.
  struct alignas(64) Waiting {
    FusedUpdate::Piece piece{};
    std::int64_t rows = 0;
    std::int64_t done = 0;
    std::int64_t asked = 0;   ///< rows whose weights and slots have been prefetched
    std::int64_t buffer = 0;  ///< index of the buffer, 0 or 1, that holds the gradient
  };

  std::size_t buffers_bytes() const {
    return static_cast<std::size_t>(2 * product_.parts() * buffer_bytes_);
  }

  void finish(const FusedUpdate::Step& step, const float* sums, const Product::Place& at) {
    Waiting& waiting = waiting_[static_cast<std::size_t>(at.part)];
    const std::int64_t buffer = 1 - waiting.buffer;
    std::byte* rounded = step.args.workspace + (2 * at.part + buffer) * buffer_bytes_;
    const std::int64_t column = at.begin * k_block;
    const std::int64_t columns = std::min(n_, at.end * k_block) - column;
    finish_({.sums = sums,
             .rows = std::min(k_block, m_ - at.i * k_block),
             .columns = std::min(k_block, n_ - at.j * k_block),
             .stride = columns,
             .rounded = rounded + (at.j - at.begin) * k_block * k_rounded_bytes});

    const std::int64_t blocks = at.end - at.begin;
    const std::int64_t block = at.j - at.begin + 1;
    apply(step, waiting, waiting.rows * block / blocks);
    if (block == blocks) {
      waiting = {.piece = {at.i, column, columns, rounded, columns, rounded}, .buffer = buffer};
      waiting.rows = update_.rows_of(waiting.piece);
    }
    // Prefetch the rows that are updated while the next block is computed.
    const std::int64_t next = block == blocks ? 1 : block + 1;
    const std::int64_t ahead = waiting.rows * next / blocks;
    if (ahead > waiting.asked) {
      update_.ask_for(step, waiting.piece, waiting.asked, ahead);
      waiting.asked = ahead;
    }
  }

  /// Applies the pending rows up to row `end`.
  void apply(const FusedUpdate::Step& step, Waiting& waiting, std::int64_t end) const {
    if (waiting.done == end) return;
    update_.rows(step, waiting.piece, waiting.done, end);
    waiting.done = end;
    if (end < waiting.rows) return;
    update_.pack(step, waiting.piece);
    update_.done();
  }

  graph::ops::FusedUpdatePorts ports_;
  std::int64_t m_, n_;
  Product product_;
  FusedUpdate update_;
  Finish finish_;
  std::int64_t buffer_bytes_;
  std::vector<Waiting> waiting_;  ///< by part of the matmul
};

}  // namespace

Accepts accepts_product_update(const NodeView& node, const Capabilities&) {
  return vector::accepts_fused_update(node, node.attrs().get<DType>("T"));
}

Prepared prepare_product_update(const NodeView& node,
                                const MicroKernel& unit,
                                const Capabilities& capabilities) {
  ProductUpdate update(node, unit, capabilities);
  const std::size_t workspace_bytes = update.workspace_bytes();
  return launch(std::move(update), workspace_bytes);
}

}  // namespace halfstep::backend::cpu::packed
