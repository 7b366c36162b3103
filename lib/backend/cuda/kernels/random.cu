#include "backend/cuda/kernels/random.h"

#include "backend/cuda/kernels/device/element.h"
#include "core/philox.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// Four numbers of one counter.
__global__ void uniform_kernel(UniformParams p) {
  const std::uint64_t key = mix(p.stream, static_cast<std::uint64_t>(*p.ordinal));
  const std::int64_t end = p.first + p.elements;
  for (std::int64_t four = p.first / 4 + thread_of_grid(); four * 4 < end;
       four += threads_of_grid()) {
    const auto words = random_words(p.seed, key, static_cast<std::uint64_t>(four));
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t i = four * 4 + j - p.first;
      if (i >= 0 && i < p.elements) p.y[i] = to_uniform(words[static_cast<std::size_t>(j)]);
    }
  }
}

}  // namespace

void uniform(Stream stream, const UniformParams& p) {
  launch(uniform_kernel, grid_of((p.first % 4 + p.elements + 3) / 4), stream, p);
}

}  // namespace halfstep::backend::cuda::kernels
