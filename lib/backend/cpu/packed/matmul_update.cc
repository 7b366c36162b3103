// PackedMatMulUpdate: a GEMM whose epilogue applies the gradient. A row of 32 x 32 blocks of the
// gradient is rounded as by PackedMatMul, into a buffer that stays in a cache, and applied as by
// FusedUpdate: bit-identical to both ops, and the gradient does not go through memory.
//
// The update of a row of blocks overlaps the multiplication of the next one: after each complete
// block some rows of elements are updated, whose weights and slots were prefetched one block
// earlier.

#include <algorithm>
#include <vector>

#include "backend/cpu/packed/gemm.h"
#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/vector/update.h"

namespace halfstep::backend::cpu::packed {
namespace {

using vector::FusedUpdate;

constexpr std::int64_t k_rounded_bytes = 2;

class MatMulUpdate {
 public:
  MatMulUpdate(const NodeView& node,
               const MicroKernel& micro_kernel,
               const Capabilities& capabilities)
      : ports_(graph::ops::fused_update_ports(node.node)),
        m_(node.attrs().get<std::int64_t>("m")),
        n_(node.attrs().get<std::int64_t>("n")),
        gemm_(gemm_of(node.attrs(), micro_kernel, capabilities.threads, Gemm::TileShape::square)),
        update_(node, {node.attrs().get<DType>("T"), {m_, n_}}, capabilities),
        block_epilogue_(
            block_kernels(capabilities.isa).of(graph::ops::operand_format(node.attrs())).epilogue),
        buffer_bytes_(gemm_.max_tile_columns() * k_block_size * k_block_size * k_rounded_bytes),
        pending_(static_cast<std::size_t>(gemm_.parts())) {}

  std::size_t workspace_bytes() const { return buffers_bytes() + gemm_.workspace_bytes(); }

  void operator()(const Args& args) {
    const FusedUpdate::Inputs inputs = update_.inputs(args);
    std::fill(pending_.begin(), pending_.end(), PendingUpdate{});
    gemm_.run(
        args.in[ports_.rule.gradient].as<std::byte>(),
        args.in[ports_.packed_end].as<std::byte>(),
        args.workspace + buffers_bytes(),
        [&](const float* accumulators, const Gemm::BlockPosition& at) {
          finish_block(inputs, accumulators, at);
        },
        [&](std::int64_t part) {
          PendingUpdate& pending = pending_[static_cast<std::size_t>(part)];
          apply(inputs, pending, pending.rows);
        });
  }

 private:
  /// A rounded row of blocks of the gradient, of which the first `applied` rows have been applied.
  struct alignas(64) PendingUpdate {
    FusedUpdate::Tile tile{};
    std::int64_t rows = 0;
    std::int64_t applied = 0;
    std::int64_t prefetched = 0;  ///< rows whose weights and slots have been prefetched
    std::int64_t buffer = 0;      ///< index of the buffer, 0 or 1, that holds the gradient
  };

  std::size_t buffers_bytes() const {
    return static_cast<std::size_t>(2 * gemm_.parts() * buffer_bytes_);
  }

  void finish_block(const FusedUpdate::Inputs& inputs,
                    const float* accumulators,
                    const Gemm::BlockPosition& at) {
    PendingUpdate& pending = pending_[static_cast<std::size_t>(at.part)];
    const std::int64_t buffer = 1 - pending.buffer;
    std::byte* rounded = inputs.args.workspace + (2 * at.part + buffer) * buffer_bytes_;
    const std::int64_t column = at.begin * k_block_size;
    const std::int64_t columns = std::min(n_, at.end * k_block_size) - column;
    block_epilogue_({.accumulators = accumulators,
                     .rows = std::min(k_block_size, m_ - at.i * k_block_size),
                     .columns = std::min(k_block_size, n_ - at.j * k_block_size),
                     .stride = columns,
                     .rounded = rounded + (at.j - at.begin) * k_block_size * k_rounded_bytes});

    const std::int64_t blocks = at.end - at.begin;
    const std::int64_t block = at.j - at.begin + 1;
    apply(inputs, pending, pending.rows * block / blocks);
    if (block == blocks) {
      pending = {.tile = {at.i, column, columns, rounded, columns, rounded}, .buffer = buffer};
      pending.rows = update_.rows_of(pending.tile);
    }
    // Prefetch the rows that are updated while the next block is computed.
    const std::int64_t next = block == blocks ? 1 : block + 1;
    const std::int64_t ahead = pending.rows * next / blocks;
    if (ahead > pending.prefetched) {
      update_.prefetch(inputs, pending.tile, pending.prefetched, ahead);
      pending.prefetched = ahead;
    }
  }

  /// Applies the pending rows up to row `end`.
  void apply(const FusedUpdate::Inputs& inputs, PendingUpdate& pending, std::int64_t end) const {
    if (pending.applied == end) return;
    update_.rows(inputs, pending.tile, pending.applied, end);
    pending.applied = end;
    if (end < pending.rows) return;
    update_.pack(inputs, pending.tile);
    update_.fence();
  }

  graph::ops::FusedUpdatePorts ports_;
  std::int64_t m_, n_;
  Gemm gemm_;
  FusedUpdate update_;
  BlockEpilogue block_epilogue_;
  std::int64_t buffer_bytes_;
  std::vector<PendingUpdate> pending_;  ///< by part of the matmul
};

}  // namespace

Accepts accepts_matmul_update(const NodeView& node, const Capabilities&) {
  return vector::accepts_fused_update(node, node.attrs().get<DType>("T"));
}

Prepared prepare_matmul_update(const NodeView& node,
                               const MicroKernel& micro_kernel,
                               const Capabilities& capabilities) {
  MatMulUpdate update(node, micro_kernel, capabilities);
  const std::size_t workspace_bytes = update.workspace_bytes();
  return launch(std::move(update), workspace_bytes);
}

}  // namespace halfstep::backend::cpu::packed
