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

/// A block of at most 32 x 32 elements of a row-major matrix.
struct MatrixBlock {
  const void* data;
  std::int64_t stride;  ///< elements from row to row
  std::int64_t rows, columns;
};

/// Packs x as one k block of a panel; the rest of the k block is zero-filled.
using PackKBlock = void (*)(std::byte* to, const MatrixBlock& x);

/// The order of x in memory: its contiguous axis is the reduction axis, or the other one.
enum class Order { along_depth, across_depth };

/// The packing functions of a format for one operand: [dtype of x][Order].
struct PackFunctions {
  PackKBlock bfloat16[2];
  PackKBlock float16[2];
  PackKBlock float32[2];

  /// The two functions for x of this dtype, indexed by Order.
  const PackKBlock* from(DType dtype) const {
    return dtype == DType::bfloat16 ? bfloat16 : dtype == DType::float16 ? float16 : float32;
  }
};

/// Arguments of the epilogue of a block of accumulators. Per element y = accumulator + bias; relu:
/// y = max(y, 0); mask: y = mask ? y : 0; then one rounding to the dtype of the matmul. NaN is
/// preserved. A null pointer disables the input or output.
struct BlockEpilogueArgs {
  const float* accumulators =
      nullptr;  ///< four tiles of 16 x 16: upper left, upper right, lower ...
  std::int64_t rows = 0, columns = 0;  ///< without padding, at most 32; the padding is set to zero
  const float* bias = nullptr;         ///< 32 values
  bool relu = false;
  const std::uint32_t* mask = nullptr;  ///< one 32-bit word per row

  // Row-major, `stride` elements from row to row.
  std::int64_t stride = 0;
  void* rounded = nullptr;     ///< in the dtype of the matmul
  float* widened = nullptr;    ///< the same as float32
  float* unrounded = nullptr;  ///< y before rounding
  // K blocks of y as a packed operand.
  std::byte* as_a = nullptr;             ///< operand a, rows of y as its rows
  std::byte* as_a_transposed = nullptr;  ///< operand a, columns of y as its rows
  std::byte* as_b = nullptr;             ///< operand b, rows of y as its reduction axis
  bool stream = false;                   ///< non-temporal stores; the caller calls fence()

  float* column_sums = nullptr;    ///< 32 sums of rounded values, accumulated row after row
  std::uint32_t* signs = nullptr;  ///< one 32-bit word per row: rounded value > 0
  /// The bits of the largest |rounded value|, in the dtype of the matmul; the bits of a NaN are
  /// larger than all others.
  std::uint16_t* max_norm = nullptr;
};
using BlockEpilogue = void (*)(const BlockEpilogueArgs& block);

/// The kernels of one format, whose dtype is that of the matmul.
struct FormatKernels {
  PackFunctions pack[2];  ///< [operand]
  /// For x of the dtype of the format, with non-temporal stores: [operand][Order].
  PackKBlock pack_streaming[2][2];
  BlockEpilogue epilogue;
};

struct BlockKernels {
  FormatKernels bfloat16, float16, float16_parts;
  void (*fence)();  ///< store fence, before other threads may read non-temporal stores

  const FormatKernels& of(const graph::ops::PackedFormat& format) const;
};

/// Packed operands of at least this many bytes are evicted before they are read, so they are
/// written by non-temporal stores, which bypass the caches.
inline constexpr std::int64_t k_streamed_bytes = std::int64_t{4} << 20;

/// The best table that `isa` can run.
const BlockKernels& block_kernels(Isa isa);

/// Bit-identical to each other; avx512_bf16_block_kernels() splits float16 by VCVTNE2PS2BF16.
const BlockKernels& portable_block_kernels();
const BlockKernels& avx512_block_kernels();
const BlockKernels& avx512_bf16_block_kernels();

}  // namespace halfstep::backend::cpu::packed
