#pragma once
// Preparation of launches for the kernels of this folder.

#include <string_view>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/microkernel.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::packed {

/// PackOperand and PackedVariable.
Prepared prepare_pack(const NodeView& node, const BlockKernels& blocks);

/// PackedMatMul.
Accepts accepts_matmul(const NodeView& node, const Capabilities& capabilities);
Prepared prepare_matmul(const NodeView& node,
                        const MicroKernel& micro_kernel,
                        const BlockKernels& blocks,
                        int threads);
/// PackedMatMulUpdate.
Accepts accepts_matmul_update(const NodeView& node, const Capabilities& capabilities);
Prepared prepare_matmul_update(const NodeView& node,
                               const MicroKernel& micro_kernel,
                               const Capabilities& capabilities);
/// A MatMul of the transposed operand a in float32, by AVX-512; 16-bit operands are widened first.
Accepts accepts_outer_products(const NodeView& node);
Prepared prepare_outer_products(const NodeView& node, const Capabilities& capabilities);

}  // namespace halfstep::backend::cpu::packed
