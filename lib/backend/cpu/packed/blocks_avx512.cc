// The block work in AVX-512 (F, BW, DQ, VL). A row of a block is a pair of registers, columns 0 to
// 15 and 16 to 31, or one register of 16-bit numbers.

#include <immintrin.h>

#include "backend/cpu/packed/blocks.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"
// What becomes of the registers.
#include "backend/cpu/packed/isa/avx512_pack.inc"
// The same on the way out.
#include "backend/cpu/packed/isa/avx512_finish.inc"

template <class Value, char side, Run run>
constexpr PackStep k_past = pack_step<Value, Value, side, run, true>;

void fence() { _mm_sfence(); }

constexpr Blocks k_blocks{
    .pack = {{k_pack_steps<Bfloat16, 'a'>, k_pack_steps<Bfloat16, 'b'>},
             {k_pack_steps<Float16, 'a'>, k_pack_steps<Float16, 'b'>}},
    .pack_past =
        {{{k_past<Bfloat16, 'a', Run::along_depth>, k_past<Bfloat16, 'a', Run::across_depth>},
          {k_past<Bfloat16, 'b', Run::along_depth>, k_past<Bfloat16, 'b', Run::across_depth>}},
         {{k_past<Float16, 'a', Run::along_depth>, k_past<Float16, 'a', Run::across_depth>},
          {k_past<Float16, 'b', Run::along_depth>, k_past<Float16, 'b', Run::across_depth>}}},
    .finish = {finish<Bfloat16>, finish<Float16>},
    .fence = fence};

}  // namespace

const Blocks& avx512_blocks() { return k_blocks; }

}  // namespace halfstep::backend::cpu::packed
