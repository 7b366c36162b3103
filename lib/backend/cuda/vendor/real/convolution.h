#pragma once

#include <memory>

#include "backend/cuda/vendor/real/device.h"

namespace halfstep::backend::cuda::real {

/// A convolution by cuDNN, or nullptr when it has no plan that keeps the key's promises.
/// Errors: VendorError.
std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key);

}  // namespace halfstep::backend::cuda::real
