#pragma once
// Matmuls over operands that a kernel packs block by block while it runs: in 16 bits where a
// microkernel takes them, else widened to float32.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "backend/cpu/packed/microkernel.h"
#include "backend/cpu/vector/convert.h"

namespace halfstep::backend::cpu::packed {

/// Floats of a 32 x 32 block.
inline constexpr std::int64_t k_block_floats = k_block * k_block;

/// A Layout whose values have `width` times 16 bits.
struct PanelLayout : Layout {
  std::int64_t width = 1;

  std::int64_t step_bytes() const { return Layout::step_bytes() * width; }
  std::int64_t bytes() const { return Layout::bytes() * width; }
  std::int64_t panel_offset(std::int64_t kc, std::int64_t panel) const {
    return Layout::panel_offset(kc, panel) * width;
  }
  std::int64_t step_offset(std::int64_t panel, std::int64_t step) const {
    return Layout::step_offset(panel, step) * width;
  }
};

/// The consumer of complete accumulators: see MicroKernelArgs::finish.
struct BlockSink {
  void (*finish)(void* context, const float* sums, std::int64_t block) = nullptr;
  void* context = nullptr;
};

class PanelUnit {
 public:
  /// Of operands of `dtype`. `half`: the microkernel of 16-bit operands; without one they are
  /// widened to float32.
  PanelUnit(Isa isa, DType dtype, const HalfMicroKernel& half);

  /// Whether packed operands are float32: then a block of operand a is 32 rows of 32 floats.
  bool is_wide() const { return width_ > 1; }
  /// Bytes of an element of `dtype`.
  std::int64_t element_bytes() const { return source_.size; }
  PanelLayout layout(std::int64_t rows, std::int64_t depth) const {
    return {{rows, depth, format_}, width_};
  }

  /// To be called on a thread before its first and after its last matmul.
  void begin() const { unit_->begin(); }
  void end() const { unit_->end(); }

  /// Packs a k block. x is row-major, `stride` elements from row to row, of `dtype` or of float32;
  /// `rows` x `columns` of it, at most 32 x 32, are values and the rest of the block is zero.
  void pack(Side side,
            Run run,
            const std::byte* x,
            std::int64_t stride,
            std::int64_t rows,
            std::int64_t columns,
            std::byte* to) const;
  void pack(Side side,
            Run run,
            const float* x,
            std::int64_t stride,
            std::int64_t rows,
            std::int64_t columns,
            std::byte* to) const;
  /// Packs one k block of the operand that x, of `dtype`, has along_depth as its rows (or, of b,
  /// columns), and across_depth as its reduction elements.
  void pack_step(Side side,
                 Run run,
                 const std::byte* x,
                 std::int64_t stride,
                 const PanelLayout& layout,
                 std::int64_t panel,
                 std::int64_t step,
                 std::byte* to) const;
  /// Packs all of them.
  void pack_all(Side side,
                Run run,
                const std::byte* x,
                std::int64_t stride,
                const PanelLayout& layout,
                std::byte* to) const;

  void sweep(const MicroKernelArgs& args) const { sweep_(args); }
  /// Panel `a` times panels [first, first + count) of b over their whole depth. `scratch`: two
  /// blocks of floats and, where the depth has several kc blocks, `count` more.
  void multiply(const std::byte* a,
                const std::byte* b,
                const PanelLayout& of_b,
                std::int64_t first,
                std::int64_t count,
                float* scratch,
                BlockSink sink) const;

 private:
  const MicroKernel* unit_;
  void (*sweep_)(const MicroKernelArgs&);
  graph::ops::PackedFormat format_{DType::bfloat16, 1};
  std::int64_t width_ = 1;  ///< 2: values are widened to float32
  vector::Source source_;
  const PackStep* pack_[2] = {};         ///< [side][run], of values of the dtype
  const PackStep* pack_floats_[2] = {};  ///< the same of float32
};

/// to[j][i] = x[i][j] of 32 x 32 floats; rows of x are `stride` floats apart.
void transpose_block(const float* x, std::int64_t stride, float* to);

/// Four tiles of 16 x 16 accumulators to 32 rows of 32 floats, `stride` floats from row to row.
void copy_accumulators(const float* sums, std::int64_t rows, std::int64_t stride, float* to);

}  // namespace halfstep::backend::cpu::packed
