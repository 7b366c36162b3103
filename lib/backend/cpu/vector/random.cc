// Uniform random numbers from (seed, stream, ordinal): element i is a function of i alone.
// The same bits as the reference, for every instruction set and number of threads.

#include <algorithm>

#include "backend/cpu/vector/loops.h"
#include "backend/cpu/vector/rows.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace halfstep::backend::cpu::vector {
namespace {

Prepared prepare_uniform(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const auto seed = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("seed"));
  const auto stream = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("stream"));
  return launch([&l, seed, stream, n = node.output().shape.elements()](const Args& args) {
    const auto ordinal = static_cast<std::uint64_t>(*args.in[0].as<std::int64_t>());
    const std::uint64_t key = mix(stream, ordinal);
    float* y = args.out[0].as<float>();
    parallel_for(n / 4, 4096, [&](std::int64_t begin, std::int64_t end) {
      l.uniforms(y + 4 * begin, seed, key, static_cast<std::uint64_t>(begin), end - begin);
    });
    if (n % 4 != 0) {
      float last[4];
      l.uniforms(last, seed, key, static_cast<std::uint64_t>(n / 4), 1);
      std::copy_n(last, n % 4, y + n / 4 * 4);
    }
  });
}

}  // namespace

std::vector<Kernel> random_kernels() {
  return {{"RandomUniformFromOrdinal", "vector/random", nullptr, prepare_uniform}};
}

}  // namespace halfstep::backend::cpu::vector
