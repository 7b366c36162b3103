#pragma once

#include <memory>

#include "backend/cuda/vendor/real/device.h"

namespace halfstep::backend::cuda::real {

/// A product by cuBLASLt, or nullptr when it has no algorithm that keeps the key's promises.
/// Errors: VendorError.
std::unique_ptr<Matmul> prepare_matmul(Device& device, const MatmulKey& key);

}  // namespace halfstep::backend::cuda::real
