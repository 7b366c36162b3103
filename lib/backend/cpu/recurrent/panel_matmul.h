#pragma once
// The matmul of a recurrent step: a panel of at most 32 samples times a kernel that is packed once
// for all steps. One thread computes all steps of its panels, so steps need no barrier.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/panel_gemm.h"

namespace halfstep::backend::cpu::recurrent {

class PanelMatMul {
 public:
  /// z [rows, columns] = x [rows, depth] b for x of `dtype` and b = kernel [depth, columns] of
  /// `dtype`, or the transpose of kernel [columns, depth]; accumulated in float32.
  /// `half`: the micro-kernel of 16-bit operands; without one they are widened to float32.
  PanelMatMul(Isa isa,
              DType dtype,
              const packed::HalfMicroKernel& half,
              std::int64_t depth,
              std::int64_t columns,
              bool transposed);

  /// Bytes of the packed b, and of the scratch of a panel.
  std::int64_t packed_bytes() const { return b_.bytes(); }
  std::int64_t scratch_bytes() const;
  /// Floats from row to row of z: the columns padded to a multiple of 32.
  std::int64_t stride() const { return b_.panels() * packed::k_block_size; }

  /// Packs the kernel, whose rows are `stride` elements apart, on all threads.
  void pack(const std::byte* kernel, std::int64_t stride, std::byte* to) const;

  /// Called on each thread before its first and after its last multiply().
  void begin() const { gemm_.begin(); }
  void end() const { gemm_.end(); }
  /// `x`: rows `x_stride` elements apart. `z`: 32 rows of stride() floats, the first `rows` of them
  /// are written.
  void multiply(const std::byte* x,
                std::int64_t x_stride,
                std::int64_t rows,
                const std::byte* b,
                std::byte* scratch,
                float* z) const;

 private:
  bool transposed_;
  packed::PanelGemm gemm_;
  packed::PanelLayout a_, b_;
};

}  // namespace halfstep::backend::cpu::recurrent
