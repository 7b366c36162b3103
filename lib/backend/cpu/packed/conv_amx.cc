// Micro-kernels of convolutions on AMX tiles.

#include <immintrin.h>

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

// --- forward and towards the input --------------------------------------------------------------

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

/// Stores the next `n` rows of a block; tiles: 2 for 32 x 32, 1 for 64 x 16.
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
      const __m512 left = _mm512_add_ps(_mm512_load_ps(p.accumulators + p.row * 16), to.bias[0]);
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

/// 32 positions by 32 outputs.
template <int products>
inline void multiply_2x2(Bytes a, std::int64_t low, std::int64_t row, Bytes b) {
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
    if constexpr (products == 4) {
      _tile_loadd(6, b + 2048, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
      _tile_loadd(7, b + 3072, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(4, a, row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(6, b + 2048, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, b + 3072, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
}

/// C tiles 0 to 3 += 4 tiles of a, at addresses of their own, times tile 6.
inline void multiply_4x1(Bytes a0, Bytes a1, Bytes a2, Bytes a3, const std::int64_t* row) {
  _tile_loadd(4, a0, row[0]);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(5, a1, row[1]);
  _tile_dpbf16ps(1, 5, 6);
  _tile_loadd(4, a2, row[2]);
  _tile_dpbf16ps(2, 4, 6);
  _tile_loadd(5, a3, row[3]);
  _tile_dpbf16ps(3, 5, 6);
}

/// 64 positions by 16 outputs: 4 tiles of a by one of b, whose low plane is `low_b` bytes after
/// the high one.
template <int products>
inline void accumulate_4x1(Bytes a0,
                           Bytes a1,
                           Bytes a2,
                           Bytes a3,
                           std::int64_t low,
                           const std::int64_t* row,
                           Bytes b,
                           std::int64_t low_b) {
  if constexpr (products == 4) {
    _tile_loadd(6, b + low_b, 64);
    multiply_4x1(a0 + low, a1 + low, a2 + low, a3 + low, row);
  }
  _tile_loadd(6, b, 64);
  if constexpr (products > 1) multiply_4x1(a0 + low, a1 + low, a2 + low, a3 + low, row);
  multiply_4x1(a0, a1, a2, a3, row);
  if constexpr (products > 1) {
    _tile_loadd(6, b + low_b, 64);
    multiply_4x1(a0, a1, a2, a3, row);
  }
}

inline void zero_accumulators() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void store_accumulators(float* to) {
  _tile_stored(0, to, 64);
  _tile_stored(1, to + 256, 64);
  _tile_stored(2, to + 512, 64);
  _tile_stored(3, to + 768, 64);
  compiler_barrier();
}

template <int products>
void gemm(const ConvGemmArgs& args) {
  constexpr bool k_half = products > 1;
  constexpr std::int64_t k_parts = k_half ? 2 : 1;
  compiler_barrier();
  Bytes filter = args.filter;
  std::int64_t first = 0;
  // While one C block is multiplied, the one before is rounded and stored: `share` rows in each k
  // block.
  for (; args.outputs - first > 16; first += 32) {
    const OutputPanel panel = output_panel(args, first);
    const std::int64_t share = args.k_blocks > 0 ? (32 + args.k_blocks - 1) / args.k_blocks : 32;
    PendingBlock pending;
    for (std::int64_t p = 0; p < args.positions; p += 32) {
      zero_accumulators();
      Bytes a = args.a + p * args.position_bytes;
      Bytes b = filter;
      for (std::int64_t k = 0; k < args.k_blocks; ++k, b += 2048 * k_parts) {
        multiply_2x2<products>(a + args.block_offsets[k], args.low_plane, args.position_bytes, b);
        store_rows<k_half, 2>(pending, panel, share);
      }
      store_rows<k_half, 2>(pending, panel, 32);
      float* block = args.accumulators + p / 32 % 2 * 1024;
      store_accumulators(block);
      pending = {block, args.result_pixel + p, 0, 32};
    }
    store_rows<k_half, 2>(pending, panel, 32);
    filter += args.k_blocks * 2048 * k_parts;
  }
  if (first < args.outputs) {
    const OutputPanel panel = output_panel(args, first);
    const std::int64_t share = args.k_blocks > 0 ? (64 + args.k_blocks - 1) / args.k_blocks : 64;
    const std::int64_t row_bytes[4] = {
        args.position_bytes, args.position_bytes, args.position_bytes, args.position_bytes};
    PendingBlock pending;
    for (std::int64_t p = 0; p < args.positions; p += 64) {
      zero_accumulators();
      Bytes a = args.a + p * args.position_bytes;
      Bytes b = filter;
      for (std::int64_t k = 0; k < args.k_blocks; ++k, b += 1024 * k_parts) {
        Bytes a0 = a + args.block_offsets[k];
        Bytes a1 = a0 + 16 * args.position_bytes;
        Bytes a2 = a1 + 16 * args.position_bytes;
        accumulate_4x1<products>(
            a0, a1, a2, a2 + 16 * args.position_bytes, args.low_plane, row_bytes, b, 1024);
        store_rows<k_half, 1>(pending, panel, share);
      }
      store_rows<k_half, 1>(pending, panel, 64);
      float* block = args.accumulators + p / 64 % 2 * 1024;
      store_accumulators(block);
      pending = {block, args.result_pixel + p, 0, 64};
    }
    store_rows<k_half, 1>(pending, panel, 64);
  }
}

// --- towards the filter -------------------------------------------------------------------------

inline void load_accumulators(const float* const* from, bool overwrite) {
  if (overwrite) {
    zero_accumulators();
    return;
  }
  _tile_loadd(0, from[0], 64);
  _tile_loadd(1, from[1], 64);
  _tile_loadd(2, from[2], 64);
  _tile_loadd(3, from[3], 64);
}

inline void scatter_accumulators(float* const* to) {
  _tile_stored(0, to[0], 64);
  _tile_stored(1, to[1], 64);
  _tile_stored(2, to[2], 64);
  _tile_stored(3, to[3], 64);
}

/// Two tiles of a by two tile columns of b.
template <int products>
inline void multiply_filter_2x2(Bytes a0,
                                std::int64_t r0,
                                Bytes a1,
                                std::int64_t r1,
                                std::int64_t low_a,
                                Bytes b0,
                                Bytes b1,
                                std::int64_t low_b) {
  if constexpr (products == 1) {
    _tile_loadd(4, a0, r0);
    _tile_stream_loadd(6, b0, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stream_loadd(7, b1, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, r1);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  } else {
    _tile_loadd(4, a0 + low_a, r0);
    _tile_loadd(5, a1 + low_a, r1);
    if constexpr (products == 4) {
      _tile_stream_loadd(6, b0 + low_b, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
      _tile_stream_loadd(7, b1 + low_b, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stream_loadd(6, b0, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_stream_loadd(7, b1, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(4, a0, r0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, r1);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    _tile_stream_loadd(6, b0 + low_b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_stream_loadd(7, b1 + low_b, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
}

/// K blocks [begin, end). Their part of a is read again for each pair of tile columns and stays in
/// the first-level cache; b bypasses it (TILELOADDT1).
template <int products>
void filter_gradient_kc_block(const FilterGradientArgs& args,
                              std::int64_t begin,
                              std::int64_t end) {
  const bool overwrite = args.overwrite && begin == 0;
  const auto accumulators = [&](std::int64_t i, std::int64_t j) {
    return args.accumulators + (i * args.tile_columns + j) * 256;
  };
  std::int64_t j = 0;
  for (; j + 1 < args.tile_columns; j += 2) {
    Bytes b0 = args.b + j * args.b_column_bytes;
    Bytes b1 = b0 + args.b_column_bytes;
    for (std::int64_t i = 0; i < args.tile_rows; i += 2) {
      // An odd last tile is computed twice, with the same result.
      const std::int64_t i1 = i + 1 < args.tile_rows ? i + 1 : i;
      float* to[4] = {
          accumulators(i, j), accumulators(i, j + 1), accumulators(i1, j), accumulators(i1, j + 1)};
      load_accumulators(to, overwrite);
      Bytes a0 = args.a + args.tiles[i].offset;
      Bytes a1 = args.a + args.tiles[i1].offset;
      const std::int64_t r0 = args.tiles[i].row_bytes;
      const std::int64_t r1 = args.tiles[i1].row_bytes;
      for (std::int64_t k = begin; k < end; ++k) {
        multiply_filter_2x2<products>(a0 + k * 64,
                                      r0,
                                      a1 + k * 64,
                                      r1,
                                      args.a_low_plane,
                                      b0 + k * 1024,
                                      b1 + k * 1024,
                                      args.b_low_plane);
      }
      scatter_accumulators(to);
    }
  }
  if (j == args.tile_columns) return;
  Bytes b = args.b + j * args.b_column_bytes;
  for (std::int64_t i = 0; i < args.tile_rows; i += 4) {
    Bytes a[4];
    float* to[4];
    std::int64_t rows[4];
    for (std::int64_t t = 0; t < 4; ++t) {
      const std::int64_t at = i + t < args.tile_rows ? i + t : args.tile_rows - 1;
      a[t] = args.a + args.tiles[at].offset;
      to[t] = accumulators(at, j);
      rows[t] = args.tiles[at].row_bytes;
    }
    load_accumulators(to, overwrite);
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t at = k * 64;
      accumulate_4x1<products>(a[0] + at,
                               a[1] + at,
                               a[2] + at,
                               a[3] + at,
                               args.a_low_plane,
                               rows,
                               b + k * 1024,
                               args.b_low_plane);
    }
    scatter_accumulators(to);
  }
}

template <int products>
void filter_gradient(const FilterGradientArgs& args) {
  constexpr std::int64_t k_kc_block = products == 1 ? 16 : 8;
  compiler_barrier();
  const std::int64_t kc_blocks = (args.k_blocks + k_kc_block - 1) / k_kc_block;
  for (std::int64_t i = 0; i < kc_blocks; ++i) {
    filter_gradient_kc_block<products>(
        args, args.k_blocks * i / kc_blocks, args.k_blocks * (i + 1) / kc_blocks);
    compiler_barrier();
  }
}

}  // namespace

constinit const ConvMicroKernels k_amx_conv_micro_kernels{
    .configure = configure_amx_tiles,
    .release = release_amx_tiles,
    .gemm = {gemm<1>, gemm<3>, gemm<4>},
    .filter_gradient = {filter_gradient<1>, filter_gradient<3>, filter_gradient<4>},
    .copy_pixels = {copy_pixels<Bfloat16>, copy_pixels<Halves>},
    .pack_filter = {pack_filter<Bfloat16>, pack_filter<Halves>},
    .pair_pixels = {pair_pixels<Bfloat16>, pair_pixels<Halves>},
    .gather = gather,
    .transpose = transpose_positions};

}  // namespace halfstep::backend::cpu::packed
