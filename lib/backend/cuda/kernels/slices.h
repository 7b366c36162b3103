#pragma once
// Packing of tensors for exchanges between ranks (graph/ops/collective.cc).

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// Tensors of one dtype in slices of `ranks` ranks, and a packed tensor of another: slice r of a
/// tensor begins at packed[r * stride + offset]. Dtypes: float32, float16, bfloat16; conversions
/// round to nearest even.
struct SlicesParams {
  static constexpr std::size_t k_max_tensors = 48;
  struct Tensor {
    void* whole = nullptr;
    std::int64_t elements = 0;
    std::int64_t slice = 0;   ///< elements of a slice; those of all may exceed `elements`
    std::int64_t offset = 0;  ///< of its slice among those of a rank
  };

  DType whole{};
  DType packed_as{};
  void* packed = nullptr;
  std::int64_t stride = 0;  ///< elements of the slices of a rank
  std::int64_t ranks = 1;
  std::size_t count = 0;
  std::array<Tensor, k_max_tensors> tensors{};
};
/// Writes the packed tensor, with zeros beyond the end of each tensor.
void pack_slices(Stream stream, const SlicesParams& params);
/// Writes the tensors.
void unpack_slices(Stream stream, const SlicesParams& params);

}  // namespace halfstep::backend::cuda::kernels
