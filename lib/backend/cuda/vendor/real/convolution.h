#pragma once

#include <memory>

#include "backend/cuda/vendor/real/device.h"

namespace halfstep::backend::cuda::real {

/// A convolution by cuDNN, or nullptr when no plan satisfies the key. Errors: VendorError.
std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key);

}  // namespace halfstep::backend::cuda::real
