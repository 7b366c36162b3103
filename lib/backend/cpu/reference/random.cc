// Random tensors from (seed, stream, ordinal): element i is a function of i alone, so the bits do
// not depend on the number of threads.

#include <algorithm>

#include "backend/cpu/reference/reference.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace halfstep::backend::cpu {
namespace {

Prepared prepare_uniform(const NodeView& node, const Capabilities&) {
  const auto seed = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("seed"));
  const auto stream = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("stream"));
  return launch([seed, stream](const Args& a) {
    const std::uint64_t key = mix(stream, static_cast<std::uint64_t>(*a.in[0].as<std::int64_t>()));
    float* y = a.out[0].as<float>();
    const std::int64_t n = a.out[0].elements();
    parallel_for((n + 3) / 4, 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t four = begin; four < end; ++four) {
        const auto words = random_words(seed, key, static_cast<std::uint64_t>(four));
        const std::int64_t count = std::min<std::int64_t>(4, n - four * 4);
        for (std::int64_t i = 0; i < count; ++i) {
          y[four * 4 + i] = to_uniform(words[static_cast<std::size_t>(i)]);
        }
      }
    });
  });
}

}  // namespace

std::vector<Kernel> random_kernels() {
  return {
      {.op = "RandomUniformFromOrdinal",
       .name = "reference/random_uniform_from_ordinal",
       .prepare = prepare_uniform},
  };
}

}  // namespace halfstep::backend::cpu
