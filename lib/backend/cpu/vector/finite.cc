// Whether all elements of all inputs are finite. A thread that finds a non-finite element stops the
// others. Stored dtypes: float32, float16, bfloat16; other dtypes are always finite.

#include <algorithm>
#include <atomic>
#include <cmath>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/kernels.h"
#include "core/error.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::vector {
namespace {

constexpr std::int64_t k_block = 8 * k_run;

bool is_finite(const Loops& l, DType dtype, const std::byte* x, std::int64_t n) {
  if (dtype == DType::float32) return l.all_finite32(x, n);
  return l.all_finite16(x, n, dtype == DType::float16 ? 0x7c00 : 0x7f80);
}

/// Whether x * factor is finite, as float32.
bool is_finite(const Loops& l, DType dtype, const std::byte* x, std::int64_t n, float factor) {
  alignas(64) float scratch[k_run];
  const auto size = static_cast<std::int64_t>(size_bytes(dtype));
  for (std::int64_t i = 0; i < n; i += k_run) {
    const std::int64_t m = std::min(k_run, n - i);
    scale_loop(l, dtype)(scratch, x + i * size, factor, m);
    if (!l.all_finite32(scratch, m)) return false;
  }
  return true;
}

/// Runs `check` on chunks of x until one fails; then clears `finite`.
template <class Check>
void check_chunks(const TensorView& x, std::atomic<bool>& finite, const Check& check) {
  const auto* bytes = static_cast<const std::byte*>(x.data);
  const auto size = static_cast<std::int64_t>(size_bytes(x.dtype));
  parallel_for(x.elements(), 8 * k_block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += k_block) {
      if (!finite.load(std::memory_order_relaxed)) return;
      if (!check(bytes + i * size, std::min(k_block, end - i))) finite = false;
    }
  });
}

Prepared prepare_all_finite(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const bool unscaled = node.attrs().get<bool>("unscaled");
  const bool reciprocal = node.attrs().get<bool>("reciprocal");
  return launch([&l, unscaled, reciprocal](const Args& args) {
    std::atomic<bool> finite{true};
    const float unscale = unscaled ? *args.in.back().as<float>() : 1;
    const float factor = reciprocal ? 1 / unscale : unscale;
    for (const TensorView& x : args.in.first(args.in.size() - (unscaled ? 1 : 0))) {
      if (!is_computed(x.dtype)) continue;
      if (std::abs(factor) <= 1) {
        // A factor of at most 1 does not change whether a value is finite.
        check_chunks(x, finite, [&](const std::byte* chunk, std::int64_t n) {
          return is_finite(l, x.dtype, chunk, n);
        });
      } else {
        check_chunks(x, finite, [&](const std::byte* chunk, std::int64_t n) {
          return is_finite(l, x.dtype, chunk, n, factor);
        });
      }
    }
    *args.out[0].as<bool>() = finite;
  });
}

Accepts accepts_all_finite(const NodeView& node, const Capabilities&) {
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    const DType dtype = node.input(i).dtype;
    if (!is_floating(dtype)) continue;
    if (Accepts a = accepts_dtype(dtype); !a) return a;
  }
  return Accepts::yes();
}

}  // namespace

std::vector<Kernel> finite_kernels() {
  return {{"AllFinite", "vector/finite", accepts_all_finite, prepare_all_finite}};
}

}  // namespace halfstep::backend::cpu::vector
