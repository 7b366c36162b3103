// Micro-kernels of convolutions on AMX tiles.

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cpu/packed/conv_micro_kernels.h"
#include "backend/cpu/packed/microkernel.h"
#include "core/dtype.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"
#include "backend/cpu/packed/isa/avx512_halves.inc"

using Bytes = const std::byte*;

// Packing, which uses the functions above.
#include "backend/cpu/packed/isa/avx512_conv_pack.inc"

/// Orders stores before the tile loads that follow, whose intrinsics declare no memory operand.
inline void compiler_barrier() { asm volatile("" ::: "memory"); }

/// Prefetches ranges, some lines at each of `calls` calls: more at a time would wait for memory.
class Prefetcher {
 public:
  Prefetcher(PrefetchRange first, PrefetchRange second, std::int64_t calls)
      : left_(first), second_(second) {
    const std::int64_t lines = (first.bytes + second.bytes) / 64 + 1;
    step_ = (lines + calls - 1) / std::max<std::int64_t>(calls, 1);
  }
  void next() {
    for (std::int64_t i = 0; i < step_; ++i) {
      if (left_.bytes <= 0) left_ = std::exchange(second_, {});
      if (left_.bytes <= 0) return;
      _mm_prefetch(reinterpret_cast<const char*>(left_.begin), _MM_HINT_T1);
      left_.begin += 64;
      left_.bytes -= 64;
    }
  }

 private:
  PrefetchRange left_, second_;
  std::int64_t step_;
};

// --- forward and gradient with respect to the input ---------------------------------------------

/// A C block whose accumulators are being rounded and stored.
struct PendingBlock {
  const float* accumulators = nullptr;
  const std::int32_t* result_pixel = nullptr;
  std::int64_t row = 0, rows = 0;
};

/// Up to 32 neighbouring outputs of y.
struct OutputPanel {
  std::byte* y;
  std::int64_t pixel_bytes;
  __m512 bias[2];
  __mmask32 lanes;
};

template <bool half>
inline __m512i round_row(__m512 left, __m512 right) {
  if constexpr (half) {
    constexpr int k_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return both_halves(_mm512_cvtps_ph(left, k_nearest), _mm512_cvtps_ph(right, k_nearest));
  } else {
    // Accumulators of TDPBF16PS are never subnormal, which VCVTNE2PS2BF16 would flush to zero; a
    // sum with the bias can be, and is flushed.
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right, left));
  }
}

/// Stores the next `n` rows of a block; tiles: 2 for 32 x 32, 1 for 64 x 16, of which two
/// neighbouring pixels of 16 outputs are stored at a time.
template <bool half, int tiles>
inline void store_rows(PendingBlock& p, const OutputPanel& to, std::int64_t n) {
  const std::int64_t last = p.row + n < p.rows ? p.row + n : p.rows;
  for (; p.row < last; ++p.row) {
    const std::int32_t pixel = p.result_pixel[p.row];
    if (pixel < 0) continue;
    std::byte* y = to.y + pixel * to.pixel_bytes;
    if constexpr (tiles == 2) {
      const float* row = p.accumulators + p.row / 16 * 512 + p.row % 16 * 16;
      const __m512 left = _mm512_add_ps(_mm512_load_ps(row), to.bias[0]);
      const __m512 right = _mm512_add_ps(_mm512_load_ps(row + 256), to.bias[1]);
      _mm512_mask_storeu_epi16(y, to.lanes, round_row<half>(left, right));
    } else {
      const float* row = p.accumulators + p.row * 16;
      const __m512 left = _mm512_add_ps(_mm512_load_ps(row), to.bias[0]);
      if (to.pixel_bytes == 32 && p.row + 1 < last && p.result_pixel[p.row + 1] == pixel + 1) {
        const __m512 right = _mm512_add_ps(_mm512_load_ps(row + 16), to.bias[0]);
        _mm512_storeu_si512(y, round_row<half>(left, right));
        ++p.row;
        continue;
      }
      _mm512_mask_storeu_epi16(y, to.lanes, round_row<half>(left, _mm512_setzero_ps()));
    }
  }
}

inline OutputPanel output_panel(const ConvGemmArgs& args, std::int64_t first) {
  const std::int64_t left = args.outputs - first;
  OutputPanel p{args.y + first * 2,
                args.outputs * 2,
                {_mm512_setzero_ps(), _mm512_setzero_ps()},
                first_bits(left)};
  if (args.bias != nullptr) {
    p.bias[0] = _mm512_loadu_ps(args.bias + first);
    p.bias[1] = _mm512_loadu_ps(args.bias + first + 16);
  }
  return p;
}

/// C tiles 0 to 3 += tiles 4 and 5 times two tiles of b.
inline void multiply_by(Bytes b) {
  _tile_loadd(6, b, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(2, 5, 6);
  _tile_loadd(7, b + 1024, 64);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
}

/// 32 positions by 32 outputs.
template <int products>
inline void multiply_32x32(Bytes a, std::int64_t low, std::int64_t row, Bytes b) {
  Bytes a1 = a + 16 * row;
  if constexpr (products == 1) {
    _tile_loadd(4, a, row);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  } else {
    _tile_loadd(4, a + low, row);
    _tile_loadd(5, a1 + low, row);
    if constexpr (products == 4) multiply_by(b + 2048);
    multiply_by(b);
    _tile_loadd(4, a, row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    multiply_by(b + 2048);
  }
}

/// C tiles 0 to 3 += 4 tiles of a times tile 6.
inline void multiply_4x1(Bytes a, std::int64_t row) {
  _tile_loadd(4, a, row);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(5, a + 16 * row, row);
  _tile_dpbf16ps(1, 5, 6);
  _tile_loadd(4, a + 32 * row, row);
  _tile_dpbf16ps(2, 4, 6);
  _tile_loadd(5, a + 48 * row, row);
  _tile_dpbf16ps(3, 5, 6);
}

/// 64 positions by 16 outputs.
template <int products>
inline void multiply_64x16(Bytes a, std::int64_t low, std::int64_t row, Bytes b) {
  if constexpr (products == 4) {
    _tile_loadd(6, b + 1024, 64);
    multiply_4x1(a + low, row);
  }
  _tile_loadd(6, b, 64);
  if constexpr (products > 1) multiply_4x1(a + low, row);
  multiply_4x1(a, row);
  if constexpr (products > 1) {
    _tile_loadd(6, b + 1024, 64);
    multiply_4x1(a, row);
  }
}

/// Tiles 0 to n - 1.
template <int n>
inline void zero_accumulators() {
  if constexpr (n > 0) _tile_zero(0);
  if constexpr (n > 1) _tile_zero(1);
  if constexpr (n > 2) _tile_zero(2);
  if constexpr (n > 3) _tile_zero(3);
  if constexpr (n > 4) _tile_zero(4);
}

inline void store_accumulators(float* to) {
  _tile_stored(0, to, 64);
  _tile_stored(1, to + 256, 64);
  _tile_stored(2, to + 512, 64);
  _tile_stored(3, to + 768, 64);
  compiler_barrier();
}

/// Outputs from `first` on, in blocks of 32 positions by two tiles or of 64 by one. While one C
/// block is multiplied, the one before is rounded and stored: `share` rows in each k block.
template <int products, int tiles>
inline void multiply_panel(const ConvGemmArgs& args,
                           std::int64_t first,
                           Bytes filter,
                           Prefetcher& prefetcher) {
  constexpr bool k_half = products > 1;
  constexpr std::int64_t k_rows = 64 / tiles, k_step_bytes = (k_half ? 2048 : 1024) * tiles;
  const OutputPanel panel = output_panel(args, first);
  const std::int64_t share =
      args.k_blocks > 0 ? (k_rows + args.k_blocks - 1) / args.k_blocks : k_rows;
  PendingBlock pending;
  for (std::int64_t p = 0; p < args.positions; p += k_rows) {
    zero_accumulators<4>();
    Bytes a = args.a + p * args.position_bytes;
    Bytes b = filter;
    for (std::int64_t k = 0; k < args.k_blocks; ++k, b += k_step_bytes) {
      constexpr auto k_multiply = tiles == 2 ? multiply_32x32<products> : multiply_64x16<products>;
      prefetcher.next();
      k_multiply(a + args.block_offsets[k], args.low_plane, args.position_bytes, b);
      store_rows<k_half, tiles>(pending, panel, share);
    }
    store_rows<k_half, tiles>(pending, panel, k_rows);
    float* block = args.accumulators + p / k_rows % 2 * 1024;
    store_accumulators(block);
    pending = {block, args.result_pixel + p, 0, k_rows};
  }
  store_rows<k_half, tiles>(pending, panel, k_rows);
}

template <int products>
void gemm(const ConvGemmArgs& args) {
  compiler_barrier();
  Bytes filter = args.filter;
  std::int64_t first = 0;
  Prefetcher prefetcher(
      args.next, {}, args.positions / 64 * ((args.outputs + 15) / 16) * args.k_blocks);
  for (; args.outputs - first > 16; first += 32) {
    multiply_panel<products, 2>(args, first, filter, prefetcher);
    filter += args.k_blocks * (products > 1 ? 4096 : 2048);
  }
  if (first < args.outputs) multiply_panel<products, 1>(args, first, filter, prefetcher);
}

// --- gradient with respect to the filter --------------------------------------------------------

template <int n>
inline void load_accumulators(float* const* from, bool overwrite) {
  if (overwrite) {
    zero_accumulators<n>();
    return;
  }
  if constexpr (n > 0) _tile_loadd(0, from[0], 64);
  if constexpr (n > 1) _tile_loadd(1, from[1], 64);
  if constexpr (n > 2) _tile_loadd(2, from[2], 64);
  if constexpr (n > 3) _tile_loadd(3, from[3], 64);
  if constexpr (n > 4) _tile_loadd(4, from[4], 64);
}

template <int n>
inline void scatter_accumulators(float* const* to) {
  if constexpr (n > 0) _tile_stored(0, to[0], 64);
  if constexpr (n > 1) _tile_stored(1, to[1], 64);
  if constexpr (n > 2) _tile_stored(2, to[2], 64);
  if constexpr (n > 3) _tile_stored(3, to[3], 64);
  if constexpr (n > 4) _tile_stored(4, to[4], 64);
}

/// C tiles 0 to n - 1 += tile 5 times n tiles of b. TDPBF16PS has a latency of 52 cycles and takes
/// 16: neighbouring ones add to different tiles.
template <int n>
inline void multiply_line(const Bytes* b, std::int64_t offset) {
  const auto load = [&](int i) { _tile_loadd(7, b[i] + offset, 64); };
  if constexpr (n > 0) {
    load(0);
    _tile_dpbf16ps(0, 5, 7);
  }
  if constexpr (n > 1) {
    load(1);
    _tile_dpbf16ps(1, 5, 7);
  }
  if constexpr (n > 2) {
    load(2);
    _tile_dpbf16ps(2, 5, 7);
  }
  if constexpr (n > 3) {
    load(3);
    _tile_dpbf16ps(3, 5, 7);
  }
  if constexpr (n > 4) {
    load(4);
    _tile_dpbf16ps(4, 5, 7);
  }
}

/// K blocks of a row of tiles and of n columns.
struct FilterLine {
  Bytes a = nullptr;
  std::int64_t low_a = 0;
  Bytes b[5] = {};
  std::int64_t low_b = 0;
  std::int64_t k_blocks = 0;
  float* accumulators[5] = {};
  bool overwrite = false;
};

template <int products, int n>
void multiply_filter_line(const FilterLine& line, Prefetcher& prefetcher) {
  load_accumulators<n>(line.accumulators, line.overwrite);
  for (std::int64_t at = 0; at < line.k_blocks * 1024; at += 1024) {
    prefetcher.next();
    if constexpr (products > 1) {
      _tile_loadd(5, line.a + line.low_a + at, 64);
      if constexpr (products == 4) multiply_line<n>(line.b, line.low_b + at);
      multiply_line<n>(line.b, at);
    }
    _tile_loadd(5, line.a + at, 64);
    multiply_line<n>(line.b, at);
    if constexpr (products > 1) multiply_line<n>(line.b, line.low_b + at);
  }
  scatter_accumulators<n>(line.accumulators);
}

/// Multiplies lines of up to 5 columns, as equal in length as possible: the taps of 16 channels,
/// most of which read the same cache lines. A block of k blocks is short enough for these to stay
/// in the first-level cache from one line to the next.
template <int products>
void filter_gradient(const FilterGradientArgs& args) {
  constexpr auto k_lines =
      std::to_array<void (*)(const FilterLine&, Prefetcher&)>({multiply_filter_line<products, 1>,
                                                               multiply_filter_line<products, 2>,
                                                               multiply_filter_line<products, 3>,
                                                               multiply_filter_line<products, 4>,
                                                               multiply_filter_line<products, 5>});
  constexpr std::int64_t k_kc_block = products == 1 ? 16 : 8;
  compiler_barrier();
  const std::int64_t kc_blocks = (args.k_blocks + k_kc_block - 1) / k_kc_block;
  const std::int64_t lines = (args.tile_columns + 4) / 5;
  Prefetcher prefetcher(args.next[0], args.next[1], args.k_blocks * args.tile_rows * lines);
  for (std::int64_t kc = 0; kc < kc_blocks; ++kc) {
    const std::int64_t begin = args.k_blocks * kc / kc_blocks;
    FilterLine line;
    line.low_a = args.a_low_plane;
    line.low_b = args.b_low_plane;
    line.k_blocks = args.k_blocks * (kc + 1) / kc_blocks - begin;
    line.overwrite = args.overwrite && begin == 0;
    for (std::int64_t i = 0; i < args.tile_rows; ++i) {
      line.a = args.a + i * args.a_row_bytes + begin * 1024;
      for (std::int64_t l = 0; l < lines; ++l) {
        const std::int64_t first = args.tile_columns * l / lines;
        const std::int64_t n = args.tile_columns * (l + 1) / lines - first;
        for (std::int64_t j = 0; j < n; ++j) {
          line.b[j] = args.b + args.b_columns[first + j] + begin * 1024;
          line.accumulators[j] = args.accumulators + ((first + j) * args.tile_rows + i) * 256;
        }
        k_lines[n - 1](line, prefetcher);
      }
    }
    compiler_barrier();
  }
}

}  // namespace

constinit const ConvMicroKernels k_amx_conv_micro_kernels{
    .configure = configure_amx_tiles,
    .release = release_amx_tiles,
    .gemm = {gemm<1>, gemm<3>, gemm<4>},
    .filter_gradient = {filter_gradient<1>, filter_gradient<3>, filter_gradient<4>},
    .copy_pixels = {copy_pixels<Bfloat16>, copy_pixels<Float16PartsByBf16>},
    .pack_filter = {pack_filter<Bfloat16>, pack_filter<Float16PartsByBf16>},
    .pair_pixels = {pair_pixels<Bfloat16>, pair_pixels<Float16PartsByBf16>},
    .transpose_pixels = {transpose_pixels<Bfloat16>, transpose_pixels<Float16PartsByBf16>},
    .store_gradient = {store_gradient<Bfloat16>, store_gradient<Float16PartsByBf16>},
    .gather = gather};

}  // namespace halfstep::backend::cpu::packed
