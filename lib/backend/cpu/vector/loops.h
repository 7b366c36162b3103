#pragma once
// The inner loops of the vector kernels: one table per instruction set, all compiled from the same
// source (isa/*.inc) and all with the same results bit by bit. They work on short runs of float32;
// 16-bit storage is widened into a run that stays in the first-level cache, and narrowed from it.
//
// The files that are compiled for an instruction set include this header and intrinsics, nothing
// else: an inline function or template of a shared header, compiled there, could be the copy that
// the linker keeps for the whole program.

#include <cstdint>

#include "backend/capabilities.h"

namespace halfstep::backend::cpu::vector {

/// Elements of a run.
inline constexpr std::int64_t k_run = 1024;

using Widen = void (*)(float* y, const void* x, std::int64_t n);
using Narrow = void (*)(void* y, const float* x, std::int64_t n);

struct Loops {
  Widen widen_float16;
  Widen widen_bfloat16;
  Widen widen_uint8;  ///< also bool
  Widen widen_int32;
  Narrow narrow_float16;
  Narrow narrow_bfloat16;
  Narrow narrow_uint8;
  Narrow narrow_bool;
  Narrow narrow_int32;
};

/// The best table that `isa` can run.
const Loops& loops(Isa isa);

const Loops& baseline_loops();
const Loops& avx2_loops();
const Loops& avx512_loops();

}  // namespace halfstep::backend::cpu::vector
