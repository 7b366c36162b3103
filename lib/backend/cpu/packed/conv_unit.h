#pragma once
// What a convolution of 16-bit numbers on matrix units is made of: packing of images and filters,
// and sweeps over positions.
//
// Included by files that are compiled for an instruction set: plain data only (see blocks.h).

#include <cstddef>
#include <cstdint>

namespace halfstep::backend::cpu::packed {

/// Positions (rows of the product) by outputs (columns), summed in steps of 32 numbers. A float16
/// number is a high and a low bfloat16 number, which lie in two planes.
struct ConvSweep {
  const std::byte* a;           ///< position 0, high plane
  std::int64_t low;             ///< bytes from the high to the low plane
  std::int64_t row_bytes;       ///< from position to position
  const std::int32_t* offsets;  ///< bytes from a position to what step k reads of it
  std::int64_t steps;
  const std::byte* filter;    ///< see ConvUnit::pack_filter
  std::int64_t positions;     ///< a multiple of 64
  const std::int32_t* place;  ///< of each position: the pixel of the result, or -1
  std::byte* y;
  std::int64_t outputs;  ///< numbers of a pixel of the result
  const float* bias;     ///< padded to a multiple of 32, or null
  float* room;           ///< 2048 numbers, aligned to 64 bytes
};

/// A product over positions: sums[i][j] += rows of a by columns of b. Tiles of a are 16 rows of 32
/// positions, those of b 16 pairs of positions of 16 columns.
struct FilterTile {
  std::int64_t offset;     ///< bytes from the first position's a to the tile
  std::int64_t row_bytes;  ///< from row to row
};
struct ConvFilterSweep {
  const std::byte* a;
  std::int64_t low_a;  ///< bytes from the high to the low plane
  const FilterTile* tiles;
  std::int64_t down;  ///< tiles of a
  const std::byte* b;
  std::int64_t low_b;
  std::int64_t column_bytes;  ///< from one tile column of b to the next
  std::int64_t across;        ///< tile columns of b
  std::int64_t steps;         ///< of 32 positions
  bool first;                 ///< sums start at zero
  float* sums;                ///< [down][across][16][16]
};

/// `pixels` pixels of `channels` 16-bit numbers, from wherever they lie to one run.
struct ConvCopy {
  std::byte* to;
  std::int64_t low;  ///< bytes from the high to the low plane
  const std::byte* from;
  std::int64_t from_stride;  ///< bytes
  std::int64_t pixels;
  std::int64_t channels;
};

/// Part of a step of 32 numbers: where lane 0 would lie, as an offset from the position's first
/// number, and which lanes are taken from there.
struct ConvPiece {
  std::int32_t offset;
  std::uint32_t lanes;
};
struct ConvGather {
  std::byte* to;             ///< [position][step] of 64 bytes
  const std::byte* from;     ///< the grid
  const std::int32_t* base;  ///< of each position: its first number in the grid
  std::int64_t positions;
  const ConvPiece* pieces;
  const std::int32_t* ends;  ///< of each step: past its last piece
  std::int64_t steps;
};

/// Filter values k, n lie at filter[k_offset[k] + n * n_stride].
struct ConvFilter {
  std::byte* to;
  const std::uint16_t* filter;
  const std::int32_t* k_offset;  ///< -1: zero
  std::int64_t steps;
  std::int64_t n_stride;
  std::int64_t outputs;
};

/// `pixels` pixels of `channels` numbers in pairs of pixels, 16 channels of a pair in a line.
struct ConvPair {
  std::byte* to;
  std::int64_t low;           ///< bytes from the high to the low plane
  std::int64_t column_bytes;  ///< from 16 channels to the next
  const std::byte* from;
  std::int64_t pixels;
  std::int64_t channels;
};

struct ConvUnit {
  void (*begin)();
  void (*end)();
  /// By partial products: 1, 3, 4.
  void (*sweep[3])(const ConvSweep& sweep);
  void (*filter_sweep[3])(const ConvFilterSweep& sweep);
  /// [bfloat16, float16]
  void (*copy[2])(const ConvCopy& copy);
  void (*gather)(const ConvGather& gather);
  /// Step `step` of the packed filter: panels of 32 outputs (the last one of 16 where that is
  /// enough), of each all steps, of each step the high and the low part, of each part one tile of
  /// 1 KiB for 16 outputs: 16 pairs of k.
  void (*pack_filter[2])(const ConvFilter& filter, std::int64_t step);
  /// 32 positions of 16 channels each, `stride` bytes apart, as 16 rows of 32 positions, `pitch`
  /// bytes apart. `positions` and `channels` may be fewer: the rest is zero.
  void (*transpose)(std::byte* to,
                    std::int64_t pitch,
                    const std::byte* from,
                    std::int64_t stride,
                    std::int64_t positions,
                    std::int64_t channels);
  /// A row of pixels in pairs, for tiles of b. [bfloat16, float16]
  void (*pair[2])(const ConvPair& pair);
};

extern const ConvUnit k_amx_conv_unit;

/// Bytes of a filter for `outputs` outputs and `steps` steps.
constexpr std::int64_t packed_filter_bytes(std::int64_t outputs,
                                           std::int64_t steps,
                                           std::int64_t parts) {
  return (outputs + 15) / 16 * steps * parts * 1024;
}

}  // namespace halfstep::backend::cpu::packed
