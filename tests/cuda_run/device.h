#pragma once
// The emulated device, opened through the plugin like a GPU.

#include <string_view>

#include "backend/cuda/cuda.h"

namespace halfstep::train {

/// Errors: InternalError with the reason when it cannot be opened.
backend::Backend open_emulated(const backend::cuda::DeviceOptions& options = {});

/// One that is opened once.
const backend::Backend& emulated();

/// The device of the plugin that the environment variable HALFSTEP_CUDA_PLUGIN names, which may be
/// a GPU, else the emulated one. Opened once.
const backend::Backend& emulated_or_named();

}  // namespace halfstep::train
