#pragma once

#include <memory>

#include "backend/cuda/vendor/real/device.h"

namespace halfstep::backend::cuda::real {

/// A matmul by cuBLASLt, or nullptr when no algorithm satisfies the key. Errors: VendorError.
std::unique_ptr<Matmul> prepare_matmul(Device& device, const MatmulKey& key);

}  // namespace halfstep::backend::cuda::real
