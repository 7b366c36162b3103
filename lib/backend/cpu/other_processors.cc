// Processors other than x86-64: the baseline instruction set, no register peaks, no packed matmuls.

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/microkernel.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/vector/loops.h"

namespace halfstep::backend::cpu {

Isa detect_isa() { return Isa::baseline; }

std::string_view disabled_isa_reason() { return {}; }

std::span<const PeakUnit> peak_units() { return {}; }

const PeakUnit* fastest_unit(Isa) { return nullptr; }

const packed::BlockKernels& packed::block_kernels(Isa) { return portable_block_kernels(); }

const packed::MicroKernel& packed::float32_microkernel(Isa) { return k_portable_microkernel; }

packed::HalfMicroKernel packed::half_microkernel(Isa, DType) { return {}; }

std::span<const Kernel> packed_kernels() { return {}; }

const vector::Loops& vector::loops(Isa) { return baseline_loops(); }

}  // namespace halfstep::backend::cpu
