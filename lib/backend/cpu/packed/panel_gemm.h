#pragma once
// GEMMs over operands that a kernel packs block by block while it runs: in 16 bits if there is a
// micro-kernel for them, otherwise widened to float32.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "backend/cpu/packed/microkernel.h"
#include "backend/cpu/vector/convert.h"

namespace halfstep::backend::cpu::packed {

/// Floats of a 32 x 32 block.
inline constexpr std::int64_t k_block_floats = k_block_size * k_block_size;

/// A Layout of values of `width` times 16 bits.
struct PanelLayout : Layout {
  std::int64_t width = 1;

  std::int64_t k_block_bytes() const { return Layout::k_block_bytes() * width; }
  std::int64_t bytes() const { return Layout::bytes() * width; }
  std::int64_t panel_offset(std::int64_t kc, std::int64_t panel) const {
    return Layout::panel_offset(kc, panel) * width;
  }
  std::int64_t k_block_offset(std::int64_t panel, std::int64_t k_block) const {
    return Layout::k_block_offset(panel, k_block) * width;
  }
};

/// The epilogue of complete accumulators: see MicroKernelArgs::epilogue.
struct BlockCallback {
  void (*call)(void* context, const float* accumulators, std::int64_t block) = nullptr;
  void* context = nullptr;
};

class PanelGemm {
 public:
  /// For operands of `dtype`. `half`: the micro-kernel of 16-bit operands; without one they are
  /// widened to float32.
  PanelGemm(Isa isa, DType dtype, const HalfMicroKernel& half);

  /// Whether packed operands are float32; a block of operand a is then 32 rows of 32 floats.
  bool is_float32() const { return width_ > 1; }
  /// Bytes of an element of `dtype`.
  std::int64_t element_bytes() const { return source_.size; }
  PanelLayout layout(std::int64_t rows, std::int64_t depth) const {
    return {{rows, depth, format_}, width_};
  }

  /// Called on each thread before its first and after its last matmul.
  void begin() const { micro_kernel_->begin(); }
  void end() const { micro_kernel_->end(); }

  /// Packs 32 x 32 floats as a k block.
  void pack(Operand operand, Order order, const float* x, std::byte* to) const;
  /// Packs one k block of operand x of `dtype`. The rows of x are rows of a (or columns of b) for
  /// Order::along_depth, and reduction elements for Order::across_depth.
  void pack_k_block(Operand operand,
                    Order order,
                    const std::byte* x,
                    std::int64_t stride,
                    const PanelLayout& layout,
                    std::int64_t panel,
                    std::int64_t k_block,
                    std::byte* to) const;
  /// Packs all k blocks.
  void pack_all(Operand operand,
                Order order,
                const std::byte* x,
                std::int64_t stride,
                const PanelLayout& layout,
                std::byte* to) const;

  /// Calls the micro-kernel.
  void run(const MicroKernelArgs& args) const { run_(args); }
  /// Panel `a` times panels [first, first + count) of b over the full depth. `scratch`: two blocks
  /// of floats and, if the depth has several kc blocks, `count` more.
  void multiply(const std::byte* a,
                const std::byte* b,
                const PanelLayout& b_layout,
                std::int64_t first,
                std::int64_t count,
                float* scratch,
                BlockCallback epilogue) const;

 private:
  const MicroKernel* micro_kernel_;
  void (*run_)(const MicroKernelArgs&);
  graph::ops::PackedFormat format_{DType::bfloat16, 1};
  std::int64_t width_ = 1;  ///< 2: values are widened to float32
  vector::Source source_;
  const PackKBlock* pack_[2] = {};         ///< [operand][Order], for values of the dtype
  const PackKBlock* pack_floats_[2] = {};  ///< for float32 values
};

/// to[j][i] = x[i][j] of 32 x 32 floats; rows of x are `stride` floats apart.
void transpose_block(const float* x, std::int64_t stride, float* to);

/// Copies four tiles of 16 x 16 accumulators to 32 rows of 32 floats, `stride` floats apart.
void copy_accumulators(const float* accumulators,
                       std::int64_t rows,
                       std::int64_t stride,
                       float* to);

}  // namespace halfstep::backend::cpu::packed
