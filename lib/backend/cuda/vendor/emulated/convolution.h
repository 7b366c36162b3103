#pragma once
// cuDNN's convolutions on host memory, with the same extents, strides and paddings.

#include "backend/cuda/vendor/conv_arguments.h"
#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::emulated {

/// Runs a convolution; accumulated in float32 in a fixed order. The tensor that `kind` computes is
/// written, the others are read.
void run_conv(const ConvArguments& arguments, void* x, void* filter, void* y, const void* bias);

/// A convolution that checks alignments, overwrites its workspace with garbage and calls
/// run_conv().
std::unique_ptr<Convolution> prepare_convolution(const ConvKey& key, Stream stream);

}  // namespace halfstep::backend::cuda::emulated
