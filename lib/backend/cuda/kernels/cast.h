#pragma once
// Conversion between dtypes: to floating types rounds to nearest even; to integers truncates and
// saturates, NaN gives 0; to bool is x != 0.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

struct CastParams {
  DType from{};
  DType to{};
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
};
void cast(Stream stream, const CastParams& params);

}  // namespace halfstep::backend::cuda::kernels
