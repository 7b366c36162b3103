#pragma once
// The libraries on host memory: cuBLASLt's matmuls with the same column-major arguments and the
// same epilogues, cuDNN's convolutions with the same extents, strides and paddings.

#include "backend/cuda/vendor/conv_arguments.h"
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

/// Runs a convolution; accumulated in float32 in a fixed order. The tensor that `kind` computes is
/// written, the others are read.
void run_conv(const ConvArguments& arguments, void* x, void* filter, void* y, const void* bias);

/// A convolution that checks alignments, overwrites its workspace with garbage and calls
/// run_conv().
std::unique_ptr<Convolution> prepare_convolution(const ConvKey& key, Stream stream);

}  // namespace halfstep::backend::cuda::emulated
