#pragma once
// Gathering batches from a data set in device memory.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// batch[i] = rows[order[*first + i]] for i in [0, count): bytes as stored where the dtypes agree
/// and scale is 1, else values times `scale` with data::Loader's rounding: uint8 multiplied in
/// double, float32 in float, then rounded to the batch's dtype.
struct GatherBatchParams {
  DType from{};  ///< uint8, float32, or any dtype that is copied unchanged
  DType to{};    ///< floating, or `from`
  const void* rows = nullptr;
  const std::int32_t* order = nullptr;  ///< [samples], within the data
  const std::int64_t* first = nullptr;  ///< index in `order` of the batch's first sample; null: 0
  std::int64_t cycle = 0;  ///< if not 0, *first is a batch number, taken modulo `cycle`
  void* batch = nullptr;
  std::int64_t count = 0;
  std::int64_t row_elements = 1;
  double scale = 1;
};
void gather_batch(Stream stream, const GatherBatchParams& params);

}  // namespace halfstep::backend::cuda::kernels
