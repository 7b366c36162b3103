#include "backend/cuda/kernels/random.h"

#include "backend/cuda/kernels/device/element.h"
#include "core/philox.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// Four numbers of one counter.
__global__ void uniform_kernel(UniformParams p) {
  const std::uint64_t key = mix(p.stream, static_cast<std::uint64_t>(*p.ordinal));
  for (std::int64_t four = thread_of_grid(); four * 4 < p.elements; four += threads_of_grid()) {
    const auto words = random_words(p.seed, key, static_cast<std::uint64_t>(four));
    for (std::int64_t i = 0; i < 4 && four * 4 + i < p.elements; ++i) {
      p.y[four * 4 + i] = to_uniform(words[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace

void uniform(Stream stream, const UniformParams& p) {
  launch(uniform_kernel, grid_of((p.elements + 3) / 4), stream, p);
}

}  // namespace halfstep::backend::cuda::kernels
