#pragma once
// What cuDNN must know of a GPU to choose engines for it, without one at hand.

#include <string>

#include "backend/cuda/vendor/real/descriptor.h"

namespace halfstep::backend::cuda::real {

/// A device described by cuDNN's JSON. Errors: VendorError for what cuDNN does not understand.
DescriptorPtr device_properties(const std::string& json);

/// The same JSON of a device of this machine. Errors: VendorError.
std::string device_properties_json(int device);

}  // namespace halfstep::backend::cuda::real
