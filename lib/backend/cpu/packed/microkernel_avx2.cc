// GEMM of float32 operands in vectors of 32 bytes, by FMA.

#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

using V [[gnu::vector_size(32)]] = float;

#include "backend/cpu/packed/isa/microkernel_floats.inc"

}  // namespace

constinit const MicroKernel k_avx2_microkernel{.name = "avx2",
                                               .begin = no_op,
                                               .end = no_op,
                                               .run = {micro_kernel, nullptr, nullptr},
                                               .panels = {8, 0}};

}  // namespace halfstep::backend::cpu::packed
