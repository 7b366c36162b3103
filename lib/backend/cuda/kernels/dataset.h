#pragma once
// Batches from data that lie on the device.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// batch[i] = rows[order[*first + i]] for i in [0, count): bytes as stored where the dtypes agree
/// and scale is 1, else numbers times `scale` as data::Loader gives them: uint8 by one product in
/// double, float32 by one in float, then rounded to the batch's dtype.
struct GatherBatchParams {
  DType from{};  ///< uint8, float32, or any dtype that stays as it is
  DType to{};    ///< floating, or `from`
  const void* rows = nullptr;
  const std::int32_t* order = nullptr;  ///< [samples], within the data
  const std::int64_t* first = nullptr;  ///< where in `order` the batch begins; null: at 0
  std::int64_t cycle = 0;  ///< if not 0, *first counts batches and begins again after so many
  void* batch = nullptr;
  std::int64_t count = 0;
  std::int64_t row_elements = 1;
  double scale = 1;
};
void gather_batch(Stream stream, const GatherBatchParams& params);

}  // namespace halfstep::backend::cuda::kernels
