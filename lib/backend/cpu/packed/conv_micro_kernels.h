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

/// Memory that is read after the GEMM, which a GEMM prefetches into the second-level cache.
struct PrefetchRange {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
};

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
  PrefetchRange next;
};

/// accumulators[j][i] += row i of tiles of a times column j of tiles of b, summed over positions,
/// 32 in a k block. A tile of a: 16 rows of 32 positions. A tile of b: 16 pairs of positions of 16
/// columns. The tiles of neighbouring k blocks are neighbours.
struct FilterGradientArgs {
  const std::byte* a;
  std::int64_t a_low_plane;  ///< bytes from the high to the low plane of a
  std::int64_t a_row_bytes;  ///< from one row of tiles of a to the next
  std::int64_t tile_rows;
  const std::byte* b;
  std::int64_t b_low_plane;
  const std::int64_t* b_columns;  ///< bytes from b to the first tile of each column
  std::int64_t tile_columns;
  std::int64_t k_blocks;
  bool overwrite;       ///< the accumulators start at zero
  float* accumulators;  ///< [tile_columns][tile_rows][16][16]
  PrefetchRange next[2];
};

/// to[j][i] = the sum over `parts` of tile[i][j], rounded once: one tile of a filter's gradient.
struct StoreGradientArgs {
  const float* tile;         ///< [16][16], of the first part
  std::int64_t part_stride;  ///< values from one part to the next
  std::int64_t parts;
  std::byte* to;
  std::int64_t row_bytes;  ///< from row to row of `to`
  std::int64_t rows, columns;
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
struct GatherSegment {
  std::int32_t offset;  ///< of lane 0, in values from the position's first value
  std::uint32_t lanes;  ///< the lanes that are loaded from there
};

/// Copies the values that each position reads to [position][k block][32].
struct GatherArgs {
  std::byte* to;
  const std::byte* from;
  const std::int32_t* base;  ///< offset of each position's first value in `from`, in values
  std::int64_t positions;    ///< a multiple of 64
  const GatherSegment* segments;
  const std::int32_t* segment_ends;  ///< past the last piece of each k block
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

/// Writes pixels to neighbouring cells of two copies of a grid whose cells are interleaved in
/// pairs: 16 channels of a pair in a cache line. Pair q of to[0] is of cells 2 q and 2 q + 1, that
/// of to[1] of 2 q + 1 and 2 q + 2; a pair's other cell is kept.
struct PairPixelsArgs {
  std::byte* to[2];           ///< pair 0; null: not needed
  std::int64_t low_plane;     ///< bytes from the high to the low plane of both
  std::int64_t column_bytes;  ///< from 16 channels to the next 16
  std::int64_t cell;          ///< of the first pixel
  const std::byte* from;
  bool zeros;  ///< instead of the values of `from`
  std::int64_t from_stride;
  std::int64_t pixels;
  std::int64_t channels;
};

/// Transposes pixels to tiles of 16 channels of 32 positions.
struct TransposePixelsArgs {
  std::byte* to;           ///< [16 channels][k block][16][32]
  std::int64_t row_bytes;  ///< from 16 channels to the next 16
  std::int64_t low_plane;  ///< bytes from the high to the low plane of `to`
  const std::byte* from;
  std::int64_t channels;
  const std::int32_t* pixel;  ///< of each position; -1: zeros
  std::int64_t pixels;        ///< positions of a pixel from here on are zeros, too
  std::int64_t k_blocks;
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
  void (*transpose_pixels[2])(const TransposePixelsArgs& args);
  void (*store_gradient[2])(const StoreGradientArgs& args);

  void (*gather)(const GatherArgs& args);
};

extern const ConvMicroKernels k_amx_conv_micro_kernels;

/// Bytes of a packed filter.
constexpr std::int64_t packed_filter_bytes(std::int64_t outputs,
                                           std::int64_t k_blocks,
                                           std::int64_t planes) {
  return (outputs + 15) / 16 * k_blocks * planes * 1024;
}

}  // namespace halfstep::backend::cpu::packed
