// Convolutions on AMX tiles.

#include <immintrin.h>

#include "backend/cpu/packed/conv_unit.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/avx512.inc"

using Bytes = const std::byte*;

struct TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

// Static, and behind a barrier: see unit_amx.cc.
alignas(64) const TileShapes k_shapes;

void begin() {
  asm volatile("" ::: "memory");
  _tile_loadconfig(&k_shapes);
}

void end() { _tile_release(); }

/// Tile loads do not say that they read memory.
inline void written() { asm volatile("" ::: "memory"); }

// --- sweeps over positions ---------------------------------------------------------------------

/// A block of sums that is being rounded and stored.
struct Pending {
  const float* sums = nullptr;
  const std::int32_t* place = nullptr;
  std::int64_t row = 0, rows = 0;
};

/// Where the outputs of a panel go.
struct Panel {
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
    // Tiles hold no denormal numbers, which this would take for zero.
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right, left));
  }
}

/// Stores the next `n` rows of a block; tiles: 2 for 32 x 32, 1 for 64 x 16.
template <bool half, int tiles>
inline void store_rows(Pending& p, const Panel& to, std::int64_t n) {
  const std::int64_t last = p.row + n < p.rows ? p.row + n : p.rows;
  for (; p.row < last; ++p.row) {
    const std::int32_t place = p.place[p.row];
    if (place < 0) continue;
    std::byte* y = to.y + place * to.pixel_bytes;
    if constexpr (tiles == 2) {
      const float* row = p.sums + p.row / 16 * 512 + p.row % 16 * 16;
      const __m512 left = _mm512_add_ps(_mm512_load_ps(row), to.bias[0]);
      const __m512 right = _mm512_add_ps(_mm512_load_ps(row + 256), to.bias[1]);
      _mm512_mask_storeu_epi16(y, to.lanes, round_row<half>(left, right));
    } else {
      const __m512 left = _mm512_add_ps(_mm512_load_ps(p.sums + p.row * 16), to.bias[0]);
      _mm512_mask_storeu_epi16(y, to.lanes, round_row<half>(left, _mm512_setzero_ps()));
    }
  }
}

inline Panel panel_of(const ConvSweep& s, std::int64_t first) {
  const std::int64_t left = s.outputs - first;
  Panel p{
      s.y + first * 2, s.outputs * 2, {_mm512_setzero_ps(), _mm512_setzero_ps()}, first_bits(left)};
  if (s.bias != nullptr) {
    p.bias[0] = _mm512_loadu_ps(s.bias + first);
    p.bias[1] = _mm512_loadu_ps(s.bias + first + 16);
  }
  return p;
}

/// 32 positions by 32 outputs.
template <int products>
inline void step_2x2(Bytes a, std::int64_t low, std::int64_t row, Bytes b) {
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

/// 4 tiles of a, at addresses of their own, times tile 6.
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

/// 4 tiles of a by one of b, whose low part lies `low_b` bytes behind the high one.
template <int products>
inline void step_4x1(Bytes a0,
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

inline void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void store_sums(float* to) {
  _tile_stored(0, to, 64);
  _tile_stored(1, to + 256, 64);
  _tile_stored(2, to + 512, 64);
  _tile_stored(3, to + 768, 64);
  written();
}

template <int products>
void sweep(const ConvSweep& s) {
  constexpr bool k_half = products > 1;
  constexpr std::int64_t k_parts = k_half ? 2 : 1;
  written();
  Bytes filter = s.filter;
  std::int64_t first = 0;
  // While one block is multiplied, the one before is rounded and stored, some rows in each step.
  for (; s.outputs - first > 16; first += 32) {
    const Panel panel = panel_of(s, first);
    const std::int64_t share = s.steps > 0 ? (32 + s.steps - 1) / s.steps : 32;
    Pending pending;
    for (std::int64_t p = 0; p < s.positions; p += 32) {
      zero_sums();
      Bytes a = s.a + p * s.row_bytes;
      Bytes b = filter;
      for (std::int64_t k = 0; k < s.steps; ++k, b += 2048 * k_parts) {
        step_2x2<products>(a + s.offsets[k], s.low, s.row_bytes, b);
        store_rows<k_half, 2>(pending, panel, share);
      }
      store_rows<k_half, 2>(pending, panel, 32);
      float* sums = s.room + p / 32 % 2 * 1024;
      store_sums(sums);
      pending = {sums, s.place + p, 0, 32};
    }
    store_rows<k_half, 2>(pending, panel, 32);
    filter += s.steps * 2048 * k_parts;
  }
  if (first < s.outputs) {
    const Panel panel = panel_of(s, first);
    const std::int64_t share = s.steps > 0 ? (64 + s.steps - 1) / s.steps : 64;
    const std::int64_t rows[4] = {s.row_bytes, s.row_bytes, s.row_bytes, s.row_bytes};
    Pending pending;
    for (std::int64_t p = 0; p < s.positions; p += 64) {
      zero_sums();
      Bytes a = s.a + p * s.row_bytes;
      Bytes b = filter;
      for (std::int64_t k = 0; k < s.steps; ++k, b += 1024 * k_parts) {
        Bytes a0 = a + s.offsets[k];
        Bytes a1 = a0 + 16 * s.row_bytes;
        Bytes a2 = a1 + 16 * s.row_bytes;
        step_4x1<products>(a0, a1, a2, a2 + 16 * s.row_bytes, s.low, rows, b, 1024);
        store_rows<k_half, 1>(pending, panel, share);
      }
      store_rows<k_half, 1>(pending, panel, 64);
      float* sums = s.room + p / 64 % 2 * 1024;
      store_sums(sums);
      pending = {sums, s.place + p, 0, 64};
    }
    store_rows<k_half, 1>(pending, panel, 64);
  }
}

// --- sweeps over the filter --------------------------------------------------------------------

inline void load_sums(const float* const* from, bool first) {
  if (first) {
    zero_sums();
    return;
  }
  _tile_loadd(0, from[0], 64);
  _tile_loadd(1, from[1], 64);
  _tile_loadd(2, from[2], 64);
  _tile_loadd(3, from[3], 64);
}

inline void put_sums(float* const* to) {
  _tile_stored(0, to[0], 64);
  _tile_stored(1, to[1], 64);
  _tile_stored(2, to[2], 64);
  _tile_stored(3, to[3], 64);
}

/// Two tiles of a by two columns of b.
template <int products>
inline void filter_step(Bytes a0,
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

/// Steps [begin, end) of the sum. What they read of a is read again for each pair of columns and
/// stays in the first-level cache, b is read past it.
template <int products>
void filter_slab(const ConvFilterSweep& s, std::int64_t begin, std::int64_t end) {
  const bool first = s.first && begin == 0;
  const auto sums = [&](std::int64_t i, std::int64_t j) {
    return s.sums + (i * s.across + j) * 256;
  };
  std::int64_t j = 0;
  for (; j + 1 < s.across; j += 2) {
    Bytes b0 = s.b + j * s.column_bytes;
    Bytes b1 = b0 + s.column_bytes;
    for (std::int64_t i = 0; i < s.down; i += 2) {
      // A tile without a neighbour is done twice, with the same result.
      const std::int64_t i1 = i + 1 < s.down ? i + 1 : i;
      float* to[4] = {sums(i, j), sums(i, j + 1), sums(i1, j), sums(i1, j + 1)};
      load_sums(to, first);
      Bytes a0 = s.a + s.tiles[i].offset;
      Bytes a1 = s.a + s.tiles[i1].offset;
      const std::int64_t r0 = s.tiles[i].row_bytes;
      const std::int64_t r1 = s.tiles[i1].row_bytes;
      for (std::int64_t k = begin; k < end; ++k) {
        filter_step<products>(
            a0 + k * 64, r0, a1 + k * 64, r1, s.low_a, b0 + k * 1024, b1 + k * 1024, s.low_b);
      }
      put_sums(to);
    }
  }
  if (j == s.across) return;
  Bytes b = s.b + j * s.column_bytes;
  for (std::int64_t i = 0; i < s.down; i += 4) {
    Bytes a[4];
    float* to[4];
    std::int64_t rows[4];
    for (std::int64_t t = 0; t < 4; ++t) {
      const std::int64_t at = i + t < s.down ? i + t : s.down - 1;
      a[t] = s.a + s.tiles[at].offset;
      to[t] = sums(at, j);
      rows[t] = s.tiles[at].row_bytes;
    }
    load_sums(to, first);
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t at = k * 64;
      step_4x1<products>(
          a[0] + at, a[1] + at, a[2] + at, a[3] + at, s.low_a, rows, b + k * 1024, s.low_b);
    }
    put_sums(to);
  }
}

template <int products>
void filter_sweep(const ConvFilterSweep& s) {
  constexpr std::int64_t k_slab = products == 1 ? 16 : 8;
  written();
  const std::int64_t slabs = (s.steps + k_slab - 1) / k_slab;
  for (std::int64_t i = 0; i < slabs; ++i) {
    filter_slab<products>(s, s.steps * i / slabs, s.steps * (i + 1) / slabs);
    written();
  }
}

// --- packing -----------------------------------------------------------------------------------

/// Float16::split for numbers that are not denormal as float32, as all float16 numbers and what
/// their high parts leave.
struct Halves {
  static constexpr int k_parts = 2;

  static void split(__m512i bits, __m512i* parts) {
    const __m512 left = _mm512_cvtph_ps(low_half(bits));
    const __m512 right = _mm512_cvtph_ps(high_half(bits));
    parts[0] = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right, left));
    const Row high = Bfloat16::widen(parts[0]);
    parts[1] = reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(_mm512_sub_ps(right, high.right), _mm512_sub_ps(left, high.left)));
  }
};

template <class X>
inline void copy_run(std::byte* to, std::int64_t low, const std::uint16_t* from, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m512i parts[X::k_parts];
    X::split(_mm512_loadu_si512(from + i), parts);
    for (int p = 0; p < X::k_parts; ++p) _mm512_storeu_si512(to + p * low + i * 2, parts[p]);
  }
  if (i < n) {
    const std::uint32_t lanes = first_bits(n - i);
    __m512i parts[X::k_parts];
    X::split(_mm512_maskz_loadu_epi16(lanes, from + i), parts);
    for (int p = 0; p < X::k_parts; ++p) {
      _mm512_mask_storeu_epi16(to + p * low + i * 2, lanes, parts[p]);
    }
  }
}

template <class X>
void copy(const ConvCopy& c) {
  const auto* from = reinterpret_cast<const std::uint16_t*>(c.from);
  const std::int64_t bytes = c.channels * 2;
  if (c.from_stride == bytes) {
    copy_run<X>(c.to, c.low, from, c.pixels * c.channels);
    return;
  }
  const std::int64_t stride = c.from_stride / 2;
  if (c.channels == 1) {
    for (std::int64_t i = 0; i < c.pixels; i += 32) {
      const std::int64_t n = c.pixels - i < 32 ? c.pixels - i : 32;
      std::uint16_t run[32];
      for (std::int64_t k = 0; k < n; ++k) run[k] = from[(i + k) * stride];
      copy_run<X>(c.to + i * 2, c.low, run, n);
    }
    return;
  }
  for (std::int64_t i = 0; i < c.pixels; ++i) {
    copy_run<X>(c.to + i * bytes, c.low, from + i * stride, c.channels);
  }
}

void gather(const ConvGather& g) {
  const auto* grid = reinterpret_cast<const std::uint16_t*>(g.from);
  const std::int64_t row_bytes = g.steps * 64;
  // Positions are padded to a multiple of 64.
  for (std::int64_t i = 0; i < g.positions; i += 4) {
    const std::uint16_t* from[4];
    for (int r = 0; r < 4; ++r) from[r] = grid + g.base[i + r];
    std::byte* to = g.to + i * row_bytes;
    const ConvPiece* piece = g.pieces;
    for (std::int64_t k = 0; k < g.steps; ++k, to += 64) {
      __m512i row[4];
      {
        const std::uint32_t lanes = piece->lanes;
        for (int r = 0; r < 4; ++r) {
          row[r] = _mm512_maskz_loadu_epi16(lanes, from[r] + piece->offset);
        }
        ++piece;
      }
      for (const ConvPiece* end = g.pieces + g.ends[k]; piece < end; ++piece) {
        const std::uint32_t lanes = piece->lanes;
        for (int r = 0; r < 4; ++r) {
          row[r] = _mm512_mask_loadu_epi16(row[r], lanes, from[r] + piece->offset);
        }
      }
      for (int r = 0; r < 4; ++r) _mm512_store_si512(to + r * row_bytes, row[r]);
    }
  }
}

/// Numbers 0 to 15 of two rows, in turns.
inline __m512i pairs(__m256i even, __m256i odd) {
  const __m512i spread = _mm512_set_epi16(31,
                                          15,
                                          30,
                                          14,
                                          29,
                                          13,
                                          28,
                                          12,
                                          27,
                                          11,
                                          26,
                                          10,
                                          25,
                                          9,
                                          24,
                                          8,
                                          23,
                                          7,
                                          22,
                                          6,
                                          21,
                                          5,
                                          20,
                                          4,
                                          19,
                                          3,
                                          18,
                                          2,
                                          17,
                                          1,
                                          16,
                                          0);
  return _mm512_permutexvar_epi16(spread, both_halves(even, odd));
}

template <class X>
void pack_filter(const ConvFilter& f, std::int64_t step) {
  constexpr std::int64_t k_parts = X::k_parts;
  const std::int32_t* k_offset = f.k_offset + step * 32;
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i index = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(f.n_stride)));
  for (std::int64_t n = 0; n < f.outputs; n += 16) {
    const std::int64_t first = n / 32 * 32;
    const std::int64_t tiles = f.outputs - first > 16 ? 2 : 1;
    std::byte* to = f.to + (first * f.steps / 16 + step * tiles) * k_parts * 1024 + n % 32 * 64;
    const std::int64_t columns = f.outputs - n < 16 ? f.outputs - n : 16;
    const auto mask = static_cast<__mmask16>(first_bits(columns));
    for (std::int64_t r = 0; r < 16; ++r) {
      const std::int32_t even = k_offset[2 * r];
      const std::int32_t odd = k_offset[2 * r + 1];
      __m512i row = _mm512_setzero_si512();
      const std::uint16_t* from = f.filter + n * f.n_stride;
      if (f.n_stride == 1) {
        const auto load = [&](std::int32_t at) {
          return at < 0 ? _mm256_setzero_si256() : _mm256_maskz_loadu_epi16(mask, from + at);
        };
        row = pairs(load(even), load(odd));
      } else if (even >= 0 && odd == even + 1) {
        row = _mm512_mask_i32gather_epi32(row, mask, index, from + even, 2);
      } else {
        std::uint16_t both[32] = {};
        for (std::int64_t c = 0; c < columns; ++c) {
          if (even >= 0) both[2 * c] = from[even + c * f.n_stride];
          if (odd >= 0) both[2 * c + 1] = from[odd + c * f.n_stride];
        }
        row = _mm512_loadu_si512(both);
      }
      __m512i parts[k_parts];
      X::split(row, parts);
      for (std::int64_t p = 0; p < k_parts; ++p) {
        _mm512_store_si512(to + p * tiles * 1024 + r * 64, parts[p]);
      }
    }
  }
}

/// Pairs of 32 rows of up to 16 numbers.
inline void load_pairs(
    __m512i* to, Bytes from, std::int64_t stride, std::int64_t positions, std::int64_t channels) {
  const auto mask = static_cast<__mmask16>(first_bits(channels));
  if (positions >= 32) {
    for (std::int64_t i = 0; i < 16; ++i) {
      to[i] = pairs(_mm256_maskz_loadu_epi16(mask, from + 2 * i * stride),
                    _mm256_maskz_loadu_epi16(mask, from + (2 * i + 1) * stride));
    }
    return;
  }
  for (std::int64_t i = 0; i < 16; ++i) {
    const auto load = [&](std::int64_t at) {
      return at < positions ? _mm256_maskz_loadu_epi16(mask, from + at * stride)
                            : _mm256_setzero_si256();
    };
    to[i] = pairs(load(2 * i), load(2 * i + 1));
  }
}

void transpose_positions(std::byte* to,
                         std::int64_t pitch,
                         Bytes from,
                         std::int64_t stride,
                         std::int64_t positions,
                         std::int64_t channels) {
  __m512i rows[16];
  load_pairs(rows, from, stride, positions, channels < 16 ? channels : 16);
  transpose(rows);
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * pitch, rows[i]);
}

template <class X>
void pair_pixels(const ConvPair& p) {
  const auto* from = reinterpret_cast<const std::uint16_t*>(p.from);
  for (std::int64_t i = 0; i < p.pixels; i += 2, from += 2 * p.channels) {
    std::byte* to = p.to + i * 32;
    for (std::int64_t c = 0; c < p.channels; c += 16, to += p.column_bytes) {
      const auto lanes = static_cast<__mmask16>(first_bits(p.channels - c));
      const __m256i even = _mm256_maskz_loadu_epi16(lanes, from + c);
      const __m256i odd = i + 1 < p.pixels ? _mm256_maskz_loadu_epi16(lanes, from + p.channels + c)
                                           : _mm256_setzero_si256();
      __m512i parts[X::k_parts];
      X::split(pairs(even, odd), parts);
      for (int k = 0; k < X::k_parts; ++k) _mm512_store_si512(to + k * p.low, parts[k]);
    }
  }
}

}  // namespace

constinit const ConvUnit k_amx_conv_unit{
    .begin = begin,
    .end = end,
    .sweep = {sweep<1>, sweep<3>, sweep<4>},
    .filter_sweep = {filter_sweep<1>, filter_sweep<3>, filter_sweep<4>},
    .copy = {copy<Bfloat16>, copy<Halves>},
    .gather = gather,
    .pack_filter = {pack_filter<Bfloat16>, pack_filter<Halves>},
    .transpose = transpose_positions,
    .pair = {pair_pixels<Bfloat16>, pair_pixels<Halves>}};

}  // namespace halfstep::backend::cpu::packed
