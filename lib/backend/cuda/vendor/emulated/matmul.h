#pragma once
// cuBLASLt's matmuls on host memory: the same column-major arguments, the same epilogues.

#include "backend/cuda/vendor/lt_arguments.h"
#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::emulated {

/// D = op(A) op(B) (+ D), then the epilogue, all column-major and accumulated in float32 in the
/// order of k. `lt_a` and `lt_b` are cuBLASLt's A and B. A mask holds one bit per row, the first
/// row in the lowest bit.
void run_lt(const LtArguments& arguments,
            const void* lt_a,
            const void* lt_b,
            void* d,
            bool accumulate,
            void* bias,
            void* mask);

/// A matmul that checks alignments, overwrites its workspace with garbage and calls run_lt().
std::unique_ptr<Matmul> prepare_matmul(const MatmulKey& key, Stream stream);

}  // namespace halfstep::backend::cuda::emulated
