#pragma once
// The convolutions of the configs that come with the sources.

#include <string>
#include <vector>

#include "backend/cuda/vendor/conv_key.h"

namespace halfstep::testing {

/// Each different convolution of each config's training step under float32, mixed_bfloat16 and
/// mixed_float16, for full batches and for the tail.
std::vector<backend::cuda::ConvKey> shipped_convolutions();

}  // namespace halfstep::testing
