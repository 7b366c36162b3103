#pragma once
// Ops that move elements of 1, 2, 4 or 8 bytes without interpreting them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

/// A strided copy: y[y_start + i . y_steps] = x[x_start + i . x_steps] for all i in `shape`. Steps
/// are in elements and may be negative, or 0 for x.
struct CopyMap {
  Shape shape;
  std::array<std::int64_t, Shape::k_max_rank> x_steps{};
  std::array<std::int64_t, Shape::k_max_rank> y_steps{};
  std::int64_t x_start = 0;
  std::int64_t y_start = 0;
};

// The copy maps of ops. Axes may be negative.
CopyMap map_of_broadcast(const Shape& x, const Shape& y);
CopyMap map_of_transpose(const Shape& x, std::span<const std::int64_t> permutation);
CopyMap map_of_reverse(const Shape& x, std::span<const std::int64_t> axes);
CopyMap map_of_slice(const Shape& x, std::span<const std::int64_t> begin, const Shape& y);
/// x inside of y; `paddings` holds before and after for each axis. y must be filled first.
CopyMap map_of_pad(const Shape& x, std::span<const std::int64_t> paddings, const Shape& y);
/// The copy back, from y to x.
CopyMap inverse_of(const CopyMap& map);

struct CopyParams {
  std::size_t element_bytes = 0;
  CopyMap map;
  const void* x = nullptr;
  void* y = nullptr;
};
void copy(Stream stream, const CopyParams& params);

/// y = x without the rows and columns that y does not have; those that x does not have are 0.
struct ResizedMatrix {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t x_rows = 0, x_columns = 0;
  std::int64_t y_rows = 0, y_columns = 0;
};

/// Up to 4 matrices of 16-bit elements, by one launch.
void resize_matrices(Stream stream, std::span<const ResizedMatrix> matrices);

/// Every element of y = *value, or 0 when `value` is null.
struct FillParams {
  std::size_t element_bytes = 0;
  const void* value = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
};
void fill(Stream stream, const FillParams& params);

/// y = x repeated along every axis; y's extents are multiples of x's.
struct TileParams {
  std::size_t element_bytes = 0;
  const void* x = nullptr;
  void* y = nullptr;
  Shape x_shape;
  Shape y_shape;
};
void tile(Stream stream, const TileParams& params);

/// y[i] = values[i], integers known on the host (Shape).
struct WriteIntegersParams {
  DType dtype{};  ///< int32 or int64
  std::array<std::int64_t, Shape::k_max_rank> values{};
  std::size_t count = 0;
  void* y = nullptr;
};
void write_integers(Stream stream, const WriteIntegersParams& params);

/// y [outer, depth, inner] = indices [outer, inner] == index along depth ? *on : *off.
struct OneHotParams {
  DType index{};  ///< any numeric dtype
  std::size_t element_bytes = 0;
  const void* indices = nullptr;
  const void* on = nullptr;
  const void* off = nullptr;
  void* y = nullptr;
  std::int64_t outer = 1;
  std::int64_t depth = 1;
  std::int64_t inner = 1;
};
void one_hot(Stream stream, const OneHotParams& params);

/// y [outer, count, inner] = x [outer, extent, inner] at indices [count], 0 where the index is out
/// of range.
struct GatherParams {
  DType index{};  ///< any integer dtype
  std::size_t element_bytes = 0;
  const void* x = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
};
void gather(Stream stream, const GatherParams& params);

/// y [segments, inner] = sums of the rows of x [rows, inner] by their id; ids out of range are
/// ignored. `dtype` is any numeric dtype.
struct SegmentSumParams {
  DType dtype{};
  DType index{};
  const void* x = nullptr;
  const void* ids = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t segments = 0;
  std::int64_t inner = 1;
  void* workspace = nullptr;  ///< of segment_sum_workspace() bytes
};
std::size_t segment_sum_workspace(const SegmentSumParams& params);
void segment_sum(Stream stream, const SegmentSumParams& params);

}  // namespace halfstep::backend::cuda::kernels
