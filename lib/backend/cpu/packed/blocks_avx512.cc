// Packing and epilogues of 32 x 32 blocks in AVX-512 (F, BW, DQ, VL). A row of a block is a pair of
// registers, columns 0 to 15 and 16 to 31, or one register of 16-bit values.

#include <immintrin.h>

#include "backend/cpu/packed/blocks.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"
// Packing, epilogues, and the table of both.
#include "backend/cpu/packed/isa/avx512_blocks.inc"

}  // namespace

const BlockKernels& avx512_block_kernels() { return k_block_kernels<Float16Parts>; }

}  // namespace halfstep::backend::cpu::packed
