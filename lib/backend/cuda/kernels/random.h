#pragma once
// Random numbers by core/philox.h from (seed, stream, ordinal), bit-identical to the CPU backend.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"

namespace halfstep::backend::cuda::kernels {

/// y[i] uniform in [0, 1): word j % 4 at position j / 4 of the stream mix(stream, *ordinal), with
/// j = first + i.
struct UniformParams {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  const std::int64_t* ordinal = nullptr;
  float* y = nullptr;
  std::int64_t elements = 0;
  std::int64_t first = 0;
};
void uniform(Stream stream, const UniformParams& params);

}  // namespace halfstep::backend::cuda::kernels
