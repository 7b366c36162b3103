#pragma once
// Device properties that let cuDNN choose engines for a GPU that is not present.

#include <string>

#include "backend/cuda/vendor/real/descriptor.h"

namespace halfstep::backend::cuda::real {

/// A device described by cuDNN's JSON. Errors: VendorError for JSON that cuDNN rejects.
DescriptorPtr device_properties(const std::string& json);

/// The JSON of a device of this machine. Errors: VendorError.
std::string device_properties_json(int device);

}  // namespace halfstep::backend::cuda::real
