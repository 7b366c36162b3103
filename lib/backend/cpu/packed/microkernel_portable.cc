// GEMM of float32 operands in vectors of 16 bytes, which every processor in use has.

#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

using V [[gnu::vector_size(16)]] = float;

#include "backend/cpu/packed/isa/microkernel_floats.inc"

}  // namespace

constinit const MicroKernel k_portable_microkernel{.name = "float32",
                                                   .begin = no_op,
                                                   .end = no_op,
                                                   .run = {micro_kernel, nullptr, nullptr},
                                                   .panels = {8, 0}};

}  // namespace halfstep::backend::cpu::packed
