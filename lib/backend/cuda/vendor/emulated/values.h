#pragma once
// Conversion of stored values to float and back, as the libraries load and store them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace halfstep::backend::cuda::emulated {

/// The first `count` elements of `data` (float16, bfloat16 or float32).
std::vector<float> load(DType dtype, const void* data, std::int64_t count);

/// Element `i`.
float load_one(DType dtype, const void* data, std::int64_t i);

/// Stores element `i`, rounded to nearest, ties to even.
void store_one(DType dtype, void* data, std::int64_t i, float value);

/// a . b in float32, in an order that depends on `count` alone.
float dot(const float* a, const float* b, std::int64_t count);

/// Throws VendorError unless `address` is a multiple of `alignment`; `what` names the operand.
void expect_aligned(const void* address, std::size_t alignment, const char* what);

}  // namespace halfstep::backend::cuda::emulated
