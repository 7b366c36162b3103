#pragma once
// What is done block by block (32 x 32) around a product: packing its operands and finishing its
// sums. One table per instruction set, all with the same results bit by bit.
//
// The files that are compiled for an instruction set include this header and intrinsics, and call
// no inline function or template of a shared header: the copy compiled there could be the one that
// the linker keeps for the whole program.

#include <cstddef>
#include <cstdint>

#include "backend/capabilities.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::packed {

/// Packs one step. x is row-major with `stride` elements from row to row; `rows` x `columns` of it,
/// at most 32 x 32, are values and the rest of the step becomes zero.
using PackStep = void (*)(
    std::byte* step, const void* x, std::int64_t stride, std::int64_t rows, std::int64_t columns);

/// How the elements of x lie: along the reduction, or across it.
enum class Run { along_depth, across_depth };

/// The packings of values of one dtype on one side: [dtype of x][Run].
struct PackSteps {
  PackStep bfloat16[2];
  PackStep float16[2];
  PackStep float32[2];

  const PackStep* from(DType dtype) const {
    return dtype == DType::bfloat16 ? bfloat16 : dtype == DType::float16 ? float16 : float32;
  }
};

/// A block of sums on its way out. Per element
///   y = sum + bias;  relu: y = max(y, 0);  mask: y = mask ? y : 0
/// then one rounding to the dtype of the product. NaN stays NaN. Null: not wanted.
struct FinishBlock {
  const float* sums = nullptr;  ///< four tiles of 16 x 16: upper left, upper right, lower ...
  std::int64_t rows = 0, columns = 0;  ///< what is not padding, at most 32; the rest is zero
  const float* bias = nullptr;         ///< 32 numbers
  bool relu = false;
  const std::uint32_t* mask = nullptr;  ///< a word for each row

  // Row-major, `stride` elements from row to row.
  std::int64_t stride = 0;
  void* rounded = nullptr;     ///< in the product's dtype
  float* widened = nullptr;    ///< the same as float32
  float* unrounded = nullptr;  ///< y before rounding
  // Steps of packed operands.
  std::byte* side_a = nullptr;      ///< with y's rows as rows
  std::byte* transposed = nullptr;  ///< side a with y's columns as rows
  std::byte* side_b = nullptr;      ///< with y's rows as depth
  bool stream = false;              ///< past the caches

  float* column_sums = nullptr;    ///< 32 sums of rounded values, row after row
  std::uint32_t* signs = nullptr;  ///< a word for each row: which rounded values are above zero
  /// The bits of the largest |rounded value|, in the product's dtype; a NaN's bits are the largest.
  std::uint16_t* max_norm = nullptr;
};
using Finish = void (*)(const FinishBlock& block);

struct Blocks {
  PackSteps pack[2][2];         ///< [bfloat16, float16 values][side]
  PackStep pack_past[2][2][2];  ///< the same of x in the values' dtype, past the caches; [Run]
  Finish finish[2];             ///< [bfloat16, float16]
  void (*fence)();              ///< before other threads may read what went past the caches
};

/// Packed operands of at least this many bytes leave the caches before they are read again, and
/// need not enter them.
inline constexpr std::int64_t k_past_bytes = std::int64_t{4} << 20;

/// The best table that `isa` can run.
const Blocks& blocks(Isa isa);

const Blocks& portable_blocks();
const Blocks& avx512_blocks();
const Blocks& avx512_bf16_blocks();

}  // namespace halfstep::backend::cpu::packed
