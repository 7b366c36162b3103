// GEMM of 16-bit values, widened to float32 in the caches, by VFMADD231PS.

#include <immintrin.h>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"
#include "backend/cpu/packed/isa/avx512_strips.inc"

struct Float32Fma {
  static constexpr int k_groups = 32;
  static constexpr I64 k_row = 128, k_group = 4, k_a_k_block = 4096, k_b_group = 128, k_right = 64;

  static __m512 multiply(__m512 accumulators, __m512 a, __m512 b) {
    return _mm512_fmadd_ps(a, b, accumulators);
  }
};

/// For a panel of a whose rows are reduction elements.
struct FmaByDepth : Float32Fma {
  static constexpr I64 k_row = 4, k_group = 128;
};

inline void store_float32(float* to, Row x, I64 right) {
  _mm512_store_ps(to, x.left);
  _mm512_store_ps(to + right, x.right);
}

/// A k block is 32 rows of 32 values, packed and widened.
template <class Value>
void widen_a(float* to, const std::byte* panel, I64 k_blocks) {
  for (I64 i = 0; i < k_blocks * 32; ++i) {
    store_float32(to + i * 32, Value::widen(_mm512_load_si512(panel + i * 64)), 16);
  }
}

/// Widens a k block of x whose rows are reduction elements, rounded to `Value`; see PackKBlock.
template <class Value, class Element>
void widen_by_depth(std::byte* k_block, const MatrixBlock& x) {
  auto* to = reinterpret_cast<float*>(k_block);
  const auto* from = static_cast<const Element*>(x.data);
  const I64 stride = x.stride, rows = x.rows;
  const std::uint32_t mask = first_bits(x.columns);
  for (I64 row = 0; row < 32; ++row, to += 32, from += stride) {
    const std::uint32_t valid = row < rows ? mask : 0;
    if (row < rows) {
      // Rows are too far apart for the hardware prefetcher to find the next block.
      const auto* next = reinterpret_cast<const char*>(from + 32);
      _mm_prefetch(next, _MM_HINT_T0);
      if constexpr (sizeof(Element) == 4) _mm_prefetch(next + 64, _MM_HINT_T0);
    }
    if constexpr (sizeof(Element) == 4) {
      store_float32(to, Value::widen(Value::round(Float32::load(from, valid))), 16);
    } else {
      store_float32(to, Value::load(from, valid), 16);
    }
  }
}

/// A line is a pair of reduction elements of 16 columns: 0, 0, 1, 1, ...
template <class Value>
void widen_b(float* to, const std::byte* panel, I64 k_blocks) {
  // Even reduction elements, then odd ones.
  alignas(64) std::uint16_t order[32];
  for (int i = 0; i < 32; ++i) order[i] = static_cast<std::uint16_t>(i % 16 * 2 + i / 16);
  const __m512i sorted = _mm512_load_si512(order);
  for (I64 block = 0; block < k_blocks; ++block) {
    for (I64 pair = 0; pair < 16; ++pair) {
      for (I64 half = 0; half < 2; ++half) {
        const __m512i line = _mm512_load_si512(panel + block * k_part + half * k_tile + pair * 64);
        store_float32(to + block * 1024 + pair * 64 + half * 16,
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
    .begin = no_op,
    .end = no_op,
    .run = {micro_kernel<Float32Fma>, nullptr, nullptr, micro_kernel<FmaByDepth>},
    .panels = {8, 0},
    .bfloat16 = k_widen<Bfloat16>,
    .float16 = k_widen<Float16>,
    .min_work = k_min_work / 4};

}  // namespace halfstep::backend::cpu::packed
