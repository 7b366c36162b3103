// Uniform random values from (seed, stream, ordinal), each a function of its index. Bit-identical
// to the reference for every instruction set and number of threads.

#include <algorithm>
#include <numeric>

#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/vector/loops.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace halfstep::backend::cpu::vector {

void uniform_elements(const Loops& loops,
                      float* y,
                      std::uint64_t seed,
                      std::uint64_t stream,
                      std::int64_t first,
                      std::int64_t n) {
  const auto fours = [&](float* to, std::int64_t counter, std::int64_t count) {
    constexpr std::int64_t k_max = 256;
    std::uint64_t counters[k_max];
    for (std::int64_t i = 0; i < count; i += k_max) {
      const std::int64_t n_counters = std::min(k_max, count - i);
      std::iota(counters, counters + n_counters, static_cast<std::uint64_t>(counter + i));
      loops.uniforms(to + 4 * i, seed, stream, counters, n_counters);
    }
  };
  // Philox gives four values per counter, of which the first and the last may be used in part.
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    float four[4];
    fours(four, begin / 4, 1);
    std::copy(four + begin % 4, four + begin % 4 + (end - begin), y + (begin - first));
  };
  const std::int64_t end = first + n;
  const std::int64_t full = std::min((first + 3) / 4 * 4, end);
  const std::int64_t full_end = std::max(end / 4 * 4, full);
  if (first < full) part(first, full);
  fours(y + (full - first), full / 4, (full_end - full) / 4);
  if (full_end < end) part(full_end, end);
}

namespace {

Prepared prepare_uniform(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const auto seed = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("seed"));
  const auto stream = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("stream"));
  const std::int64_t first = node.attrs().get<std::int64_t>("first");
  return launch([&l, seed, stream, first, n = node.output().shape.elements()](const Args& args) {
    const auto ordinal = static_cast<std::uint64_t>(*args.in[0].as<std::int64_t>());
    const std::uint64_t key = mix(stream, ordinal);
    float* y = args.out[0].as<float>();
    parallel_for(n, 16384, [&](std::int64_t begin, std::int64_t end) {
      uniform_elements(l, y + begin, seed, key, first + begin, end - begin);
    });
  });
}

}  // namespace

std::vector<Kernel> random_kernels() {
  return {{"RandomUniformFromOrdinal", "vector/random", nullptr, prepare_uniform}};
}

}  // namespace halfstep::backend::cpu::vector
