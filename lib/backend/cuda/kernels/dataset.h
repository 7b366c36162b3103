#pragma once
// Gathering batches from a data set in device memory.

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// batch[i] = rows[order[at + i]] for i in [0, count), with at = *ordinal modulo `cycle` times
/// `count`.
struct GatherBatchParams {
  std::size_t element_bytes = 0;
  const void* rows = nullptr;
  const std::int32_t* order = nullptr;  ///< indices of rows
  const std::int64_t* ordinal = nullptr;
  std::int64_t cycle = 1;
  void* batch = nullptr;
  std::int64_t count = 0;
  std::int64_t row_elements = 1;
};
void gather_batch(Stream stream, const GatherBatchParams& params);

/// *ordinal += 1; then a batch of each tensor, as above. Rows of uint8 may become float32 or 16
/// bits: float32(x) * scale in float32, rounded. One launch, by words of up to 16 bytes.
struct NextBatchParams {
  static constexpr std::size_t k_max_tensors = 4;
  struct Rows {
    const void* rows = nullptr;
    void* batch = nullptr;
    std::size_t row_bytes = 0;  ///< as stored
    DType to = DType::uint8;    ///< other than uint8: converted
    float scale = 1;            ///< of converted rows
  };

  std::int64_t* ordinal = nullptr;
  const std::int32_t* order = nullptr;
  std::int64_t cycle = 1;
  std::int64_t count = 0;
  std::size_t tensors = 0;
  std::array<Rows, k_max_tensors> tensor{};
  Tickets tickets = {};
};
void next_batch(Stream stream, const NextBatchParams& params);

}  // namespace halfstep::backend::cuda::kernels
