#pragma once
// Micro-kernels of 16-bit convolutions on a matrix unit: packing of images and filters, and GEMMs
// that multiply them in k blocks of 32 values, accumulated in float32.
//
// bfloat16 values are multiplied directly. A float16 value is the sum of a high and a low bfloat16
// value, stored in two planes; a GEMM of float16 adds three or four partial products of planes.
//
// Included by files that are compiled for an instruction set: plain data only (see blocks.h).

#include <cstddef>
#include <cstdint>

namespace halfstep::backend::cpu::packed {

/// y[position][output] = sum over k of a[position][k] * filter[k][output] + bias, rounded once to
/// bfloat16, or to float16 where there are two planes.
struct ConvGemmArgs {
  const std::byte* a;                 ///< position 0, high plane
  std::int64_t low_plane;             ///< bytes from the high to the low plane of a
  std::int64_t position_bytes;        ///< from one position to the next in a
  const std::int32_t* block_offsets;  ///< bytes from a position to its values of each k block
  std::int64_t k_blocks;
  const std::byte* filter;           ///< packed, see ConvMicroKernels::pack_filter
  std::int64_t positions;            ///< a multiple of 64
  const std::int32_t* result_pixel;  ///< pixel of y of each position; -1: not stored
  std::byte* y;                      ///< [pixel][outputs]
  std::int64_t outputs;
  const float* bias;    ///< padded to a multiple of 32, or null
  float* accumulators;  ///< scratch: 2048 values, aligned to 64 bytes
};

/// A tile of a: 16 rows of 32 positions.
struct PositionTile {
  std::int64_t offset;     ///< bytes from the first position of a
  std::int64_t row_bytes;  ///< from row to row
};

/// accumulators[i][j] += rows of tile i of a times columns of tile j of b, summed over positions,
/// 32 in a k block. A tile of b: 16 pairs of positions of 16 columns.
struct FilterGradientArgs {
  const std::byte* a;
  std::int64_t a_low_plane;  ///< bytes from the high to the low plane of a
  const PositionTile* tiles;
  std::int64_t tile_rows;  ///< number of `tiles`
  const std::byte* b;
  std::int64_t b_low_plane;
  std::int64_t b_column_bytes;  ///< from one tile column of b to the next
  std::int64_t tile_columns;
  std::int64_t k_blocks;
  bool overwrite;       ///< the accumulators start at zero
  float* accumulators;  ///< [tile_rows][tile_columns][16][16]
};

/// Copies `pixels` pixels of `channels` values, `from_stride` bytes apart, to neighbouring ones.
struct CopyPixelsArgs {
  std::byte* to;
  std::int64_t low_plane;  ///< bytes from the high to the low plane of `to`
  const std::byte* from;
  std::int64_t from_stride;
  std::int64_t pixels;
  std::int64_t channels;
};

/// Neighbouring values of a position within a k block.
struct GatherPiece {
  std::int32_t offset;  ///< of lane 0, in values from the position's first value
  std::uint32_t lanes;  ///< the lanes that are loaded from there
};

/// Copies the values that each position reads to [position][k block][32].
struct GatherArgs {
  std::byte* to;
  const std::byte* from;
  const std::int32_t* base;  ///< offset of each position's first value in `from`, in values
  std::int64_t positions;    ///< a multiple of 64
  const GatherPiece* pieces;
  const std::int32_t* piece_ends;  ///< past the last piece of each k block
  std::int64_t k_blocks;
};

/// Value (k, n) of the filter is filter[k_offset[k] + n * n_stride].
struct PackFilterArgs {
  std::byte* to;
  const std::uint16_t* filter;
  const std::int32_t* k_offset;  ///< -1: zero
  std::int64_t k_blocks;
  std::int64_t n_stride;
  std::int64_t outputs;
};

/// Interleaves each pair of neighbouring pixels: 16 channels of a pair in a cache line.
struct PairPixelsArgs {
  std::byte* to;
  std::int64_t low_plane;     ///< bytes from the high to the low plane of `to`
  std::int64_t column_bytes;  ///< from 16 channels to the next 16
  const std::byte* from;
  std::int64_t pixels;
  std::int64_t channels;
};

struct ConvMicroKernels {
  /// configure() before the first call and release() after the last, on each thread.
  void (*configure)();
  void (*release)();

  // [1, 3, 4 partial products]
  void (*gemm[3])(const ConvGemmArgs& args);
  void (*filter_gradient[3])(const FilterGradientArgs& args);

  // [bfloat16, float16]
  void (*copy_pixels[2])(const CopyPixelsArgs& args);
  /// Packs k block `k_block`: panels of 32 outputs (the last one of 16 where that is enough); of a
  /// panel all k blocks, of a k block the high and the low plane, of a plane one tile of 1 KiB for
  /// each 16 outputs, of 16 pairs of k.
  void (*pack_filter[2])(const PackFilterArgs& args, std::int64_t k_block);
  void (*pair_pixels[2])(const PairPixelsArgs& args);

  void (*gather)(const GatherArgs& args);
  /// 32 positions of 16 channels each, `stride` bytes apart, to 16 rows of 32 positions,
  /// `row_bytes` apart. Positions past `positions` and channels past `channels` become zero.
  void (*transpose)(std::byte* to,
                    std::int64_t row_bytes,
                    const std::byte* from,
                    std::int64_t stride,
                    std::int64_t positions,
                    std::int64_t channels);
};

extern const ConvMicroKernels k_amx_conv_micro_kernels;

/// Bytes of a packed filter.
constexpr std::int64_t packed_filter_bytes(std::int64_t outputs,
                                           std::int64_t k_blocks,
                                           std::int64_t planes) {
  return (outputs + 15) / 16 * k_blocks * planes * 1024;
}

}  // namespace halfstep::backend::cpu::packed
