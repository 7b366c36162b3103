// Random tensors from (seed, stream, ordinal): element i is a function of i alone, so the bits do
// not depend on the number of threads.

#include <array>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "core/philox.h"

namespace halfstep::backend::cpu {
namespace {

Prepared prepare_uniform(const NodeView& node, const Capabilities&) {
  const auto seed = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("seed"));
  const auto stream = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("stream"));
  const std::int64_t first = node.attrs().get<std::int64_t>("first");
  return launch([seed, stream, first](const Args& a) {
    const std::uint64_t key = mix(stream, static_cast<std::uint64_t>(*a.in[0].as<std::int64_t>()));
    float* y = a.out[0].as<float>();
    const std::int64_t n = a.out[0].elements();
    parallel_for(n, k_grain, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t four = -1;
      std::array<std::uint32_t, 4> words{};
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t j = first + i;
        if (j / 4 != four) {
          four = j / 4;
          words = random_words(seed, key, static_cast<std::uint64_t>(four));
        }
        y[i] = to_uniform(words[static_cast<std::size_t>(j % 4)]);
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
