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

/// A float32 matrix, rounded to 16 bits, in one with longer rows: zeros after the elements of each.
struct CastRowsParams {
  DType to{};  ///< float16 or bfloat16
  const float* x = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t padded = 0;  ///< columns of y
};
void cast_rows(Stream stream, const CastRowsParams& params);

}  // namespace halfstep::backend::cuda::kernels
