#pragma once
// Work on 32 x 32 blocks around a GEMM: packing of operands and the epilogue of accumulators. One
// table per instruction set, all with bit-identical results.
//
// Files compiled for an instruction set include this header and intrinsics only, and call no inline
// function or template of a shared header: the linker could keep the copy compiled there for the
// whole program.

#include <cstddef>
#include <cstdint>

#include "backend/capabilities.h"
#include "core/dtype.h"

namespace halfstep::graph::ops {
struct PackedFormat;
}

namespace halfstep::backend::cpu::packed {

/// Packs one k block of a panel. x is row-major with `stride` elements from row to row; `rows` x
/// `columns` of it, at most 32 x 32, are values and the rest of the block is zero-filled.
using PackStep = void (*)(
    std::byte* step, const void* x, std::int64_t stride, std::int64_t rows, std::int64_t columns);

/// The contiguous axis of x: along the reduction, or across it.
enum class Run { along_depth, across_depth };

/// The packing functions of a format for one operand: [dtype of x][Run].
struct PackSteps {
  PackStep bfloat16[2];
  PackStep float16[2];
  PackStep float32[2];

  /// The two functions for x of this dtype, indexed by Run.
  const PackStep* from(DType dtype) const {
    return dtype == DType::bfloat16 ? bfloat16 : dtype == DType::float16 ? float16 : float32;
  }
};

/// Arguments of the epilogue of a block of accumulators. Per element y = sum + bias; relu:
/// y = max(y, 0); mask: y = mask ? y : 0; then one rounding to the dtype of the matmul. NaN is
/// preserved. A null pointer disables the input or output.
struct FinishBlock {
  const float* sums = nullptr;  ///< four tiles of 16 x 16: upper left, upper right, lower ...
  std::int64_t rows = 0, columns = 0;  ///< without padding, at most 32; the padding is set to zero
  const float* bias = nullptr;         ///< 32 values
  bool relu = false;
  const std::uint32_t* mask = nullptr;  ///< one 32-bit word per row

  // Row-major, `stride` elements from row to row.
  std::int64_t stride = 0;
  void* rounded = nullptr;     ///< in the dtype of the matmul
  float* widened = nullptr;    ///< the same as float32
  float* unrounded = nullptr;  ///< y before rounding
  // K blocks of packed operands.
  std::byte* side_a = nullptr;      ///< operand a with y's rows as rows
  std::byte* transposed = nullptr;  ///< operand a with y's columns as rows
  std::byte* side_b = nullptr;      ///< operand b with y's rows as reduction axis
  bool stream = false;              ///< non-temporal stores, which the caller orders by a fence

  float* column_sums = nullptr;    ///< 32 sums of rounded values, accumulated row after row
  std::uint32_t* signs = nullptr;  ///< one 32-bit word per row: rounded value > 0
  /// The bits of the largest |rounded value|, in the dtype of the matmul; the bits of a NaN are
  /// larger than all others.
  std::uint16_t* max_norm = nullptr;
};
using Finish = void (*)(const FinishBlock& block);

/// Of values in one format: their dtype is that of the matmul.
struct FormatBlocks {
  PackSteps pack[2];  ///< [side]
  /// The same for x in the values' dtype, with non-temporal stores: [side][Run].
  PackStep pack_streaming[2][2];
  Finish finish;
};

struct Blocks {
  FormatBlocks bfloat16, float16, float16_parts;
  void (*fence)();  ///< store fence, before other threads may read non-temporal stores

  const FormatBlocks& of(const graph::ops::PackedFormat& format) const;
};

/// Packed operands of at least this many bytes are evicted before they are read again, so
/// non-temporal stores keep them out of the caches.
inline constexpr std::int64_t k_streamed_bytes = std::int64_t{4} << 20;

/// The best table that `isa` can run.
const Blocks& blocks(Isa isa);

/// Bit-identical to each other; avx512_bf16_blocks() splits float16 by VCVTNE2PS2BF16.
const Blocks& portable_blocks();
const Blocks& avx512_blocks();
const Blocks& avx512_bf16_blocks();

}  // namespace halfstep::backend::cpu::packed
