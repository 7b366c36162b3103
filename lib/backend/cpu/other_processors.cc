// Processors other than x86-64: the baseline instruction set, no register peaks, no packed matmuls.

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/microkernel.h"
#include "backend/cpu/processor.h"

namespace halfstep::backend::cpu {

Isa detect_isa() { return Isa::baseline; }

std::string_view left_out_isa() { return {}; }

std::span<const PeakUnit> peak_units() { return {}; }

const PeakUnit* fastest_unit(Isa) { return nullptr; }

const packed::Blocks& packed::blocks(Isa) { return portable_blocks(); }

const packed::MicroKernel& packed::float32_microkernel(Isa) { return k_portable_microkernel; }

packed::HalfMicroKernel packed::half_microkernel(Isa, DType) { return {}; }

std::span<const Kernel> packed_kernels() { return {}; }

}  // namespace halfstep::backend::cpu
