// GEMM on AMX tiles: TDPBF16PS, 16 x 16 accumulators of dot products of length 32. It rounds to
// nearest even and flushes subnormal operands to zero.

#include <immintrin.h>

#include "backend/cpu/packed/microkernel.h"

namespace halfstep::backend::cpu::packed {
namespace {

#include "backend/cpu/packed/isa/microkernel.inc"

/// The eight tile registers: accumulators in 0 to 3, a in 4 and 5, b in 6 and 7. Register numbers
/// are immediate operands.
struct AmxTiles {
  template <int i>
  void load_a(Bytes a) {
    if constexpr (i == 0) _tile_loadd(4, a, 64);
    if constexpr (i == 1) _tile_loadd(5, a, 64);
  }
  template <int i>
  void load_b(Bytes b) {
    if constexpr (i == 0) _tile_stream_loadd(6, b, 64);
    if constexpr (i == 1) _tile_stream_loadd(7, b, 64);
  }
  template <int i>
  void zero() {
    if constexpr (i == 0) _tile_zero(0);
    if constexpr (i == 1) _tile_zero(1);
    if constexpr (i == 2) _tile_zero(2);
    if constexpr (i == 3) _tile_zero(3);
  }
  template <int i>
  void load(const float* accumulators) {
    if constexpr (i == 0) _tile_loadd(0, accumulators, 64);
    if constexpr (i == 1) _tile_loadd(1, accumulators, 64);
    if constexpr (i == 2) _tile_loadd(2, accumulators, 64);
    if constexpr (i == 3) _tile_loadd(3, accumulators, 64);
  }
  template <int i>
  void store(float* accumulators) {
    if constexpr (i == 0) _tile_stored(0, accumulators, 64);
    if constexpr (i == 1) _tile_stored(1, accumulators, 64);
    if constexpr (i == 2) _tile_stored(2, accumulators, 64);
    if constexpr (i == 3) _tile_stored(3, accumulators, 64);
  }
  template <int i>
  void multiply() {
    if constexpr (i == 0) _tile_dpbf16ps(0, 4, 6);
    if constexpr (i == 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (i == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (i == 3) _tile_dpbf16ps(3, 5, 7);
  }
};

/// The operand of LDTILECFG.
struct TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

// Static, and loaded behind a compiler barrier: GCC 12 assumes that the instruction reads only 8 of
// the 64 bytes and removes the other stores.
alignas(64) const TileShapes k_shapes;

}  // namespace

void configure_amx_tiles() {
  asm volatile("" ::: "memory");
  _tile_loadconfig(&k_shapes);
}

void release_amx_tiles() { _tile_release(); }

constinit const MicroKernel k_amx_microkernel{
    .name = "amx",
    .begin = configure_amx_tiles,
    .end = release_amx_tiles,
    .run = {micro_kernel<AmxTiles, 1>, micro_kernel<AmxTiles, 3>, micro_kernel<AmxTiles, 4>},
    .panels = {12, 16}};

}  // namespace halfstep::backend::cpu::packed
