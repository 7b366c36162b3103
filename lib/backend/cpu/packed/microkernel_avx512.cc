// GEMM of 16-bit values, widened to float32 in the caches, by VFMADD231PS.

#include <immintrin.h>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"
#include "backend/cpu/packed/isa/avx512_strips.inc"

struct Fma {
  static constexpr int k_groups = 32;
  static constexpr I64 k_row = 128, k_column = 4, k_step = 4096, k_line = 128, k_right = 64;

  static __m512 multiply(__m512 sums, __m512 a, __m512 b) { return _mm512_fmadd_ps(a, b, sums); }
};

/// A panel of a is stored by reduction element.
struct FmaByDepth : Fma {
  static constexpr I64 k_row = 4, k_column = 128;
};

inline void store_wide(float* to, Row x, I64 right) {
  _mm512_store_ps(to, x.left);
  _mm512_store_ps(to + right, x.right);
}

/// A k block is 32 rows of 32 values in both forms.
template <class Value>
void widen_a(float* to, const std::byte* panel, I64 steps) {
  for (I64 i = 0; i < steps * 32; ++i) {
    store_wide(to + i * 32, Value::widen(_mm512_load_si512(panel + i * 64)), 16);
  }
}

/// A k block from x whose rows run across the reduction axis, rounded to `Value`; see PackStep.
template <class Value, class Element>
void widen_by_depth(std::byte* step, const void* x, I64 stride, I64 rows, I64 columns) {
  auto* to = reinterpret_cast<float*>(step);
  const auto* from = static_cast<const Element*>(x);
  const std::uint32_t mask = first_bits(columns);
  for (I64 row = 0; row < 32; ++row, to += 32, from += stride) {
    const std::uint32_t kept = row < rows ? mask : 0;
    if (row < rows) {
      // Rows are too far apart for the hardware prefetcher to find the next block.
      const auto* next = reinterpret_cast<const char*>(from + 32);
      _mm_prefetch(next, _MM_HINT_T0);
      if constexpr (sizeof(Element) == 4) _mm_prefetch(next + 64, _MM_HINT_T0);
    }
    if constexpr (sizeof(Element) == 4) {
      store_wide(to, Value::widen(Value::round(Float32::load(from, kept))), 16);
    } else {
      store_wide(to, Value::load(from, kept), 16);
    }
  }
}

/// A line is a pair of reduction elements of 16 columns: 0, 0, 1, 1, ...
template <class Value>
void widen_b(float* to, const std::byte* panel, I64 steps) {
  // Even reduction elements, then odd ones.
  alignas(64) std::uint16_t order[32];
  for (int i = 0; i < 32; ++i) order[i] = static_cast<std::uint16_t>(i % 16 * 2 + i / 16);
  const __m512i sorted = _mm512_load_si512(order);
  for (I64 step = 0; step < steps; ++step) {
    for (I64 pair = 0; pair < 16; ++pair) {
      for (I64 half = 0; half < 2; ++half) {
        const __m512i line = _mm512_load_si512(panel + step * k_part + half * k_tile + pair * 64);
        store_wide(to + step * 1024 + pair * 64 + half * 16,
                   Value::widen(_mm512_permutexvar_epi16(sorted, line)),
                   32);
      }
    }
  }
}

template <class Value>
constexpr MicroKernel::Widen k_widen{
    .operand = {widen_a<Value>, widen_b<Value>},
    .by_depth = {widen_by_depth<Value, std::uint16_t>, widen_by_depth<Value, float>}};

}  // namespace

constinit const MicroKernel k_avx512_microkernel{
    .name = "avx512",
    .begin = nothing,
    .end = nothing,
    .sweep = {sweep<Fma>, nullptr, nullptr, sweep<FmaByDepth>},
    .panels = {8, 0},
    .bfloat16 = k_widen<Bfloat16>,
    .float16 = k_widen<Float16>,
    .min_work = k_min_work / 4};

}  // namespace halfstep::backend::cpu::packed
