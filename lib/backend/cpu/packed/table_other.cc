#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/blocks.h"

namespace halfstep::backend::cpu {

const packed::Blocks& packed::blocks(Isa) { return portable_blocks(); }

std::span<const Kernel> packed_kernels() { return {}; }

}  // namespace halfstep::backend::cpu
