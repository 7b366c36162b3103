// The strided copies of the ops that move elements.

#include "backend/cuda/kernels/array.h"
#include "backend/cuda/kernels/device/walk.h"

namespace halfstep::backend::cuda::kernels {

CopyMap map_of_broadcast(const Shape& x, const Shape& y) {
  return {.shape = y, .x_steps = broadcast_strides(x, y), .y_steps = dense_strides(y)};
}

CopyMap map_of_transpose(const Shape& x, std::span<const std::int64_t> permutation) {
  const Strides dense = dense_strides(x);
  CopyMap map;
  std::array<std::int64_t, Shape::k_max_rank> extents{};
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const std::size_t axis = axis_of(permutation[i], x.rank());
    extents[i] = x[axis];
    map.x_steps[i] = dense[axis];
  }
  map.shape = Shape(std::span<const std::int64_t>(extents.data(), x.rank()));
  map.y_steps = dense_strides(map.shape);
  return map;
}

CopyMap map_of_reverse(const Shape& x, std::span<const std::int64_t> axes) {
  CopyMap map{.shape = x, .x_steps = dense_strides(x), .y_steps = dense_strides(x)};
  for (std::int64_t named : axes) {
    const std::size_t axis = axis_of(named, x.rank());
    map.x_start += (x[axis] - 1) * map.x_steps[axis];
    map.x_steps[axis] = -map.x_steps[axis];
  }
  return map;
}

CopyMap map_of_slice(const Shape& x, std::span<const std::int64_t> begin, const Shape& y) {
  CopyMap map{.shape = y, .x_steps = dense_strides(x), .y_steps = dense_strides(y)};
  for (std::size_t i = 0; i < y.rank(); ++i) map.x_start += begin[i] * map.x_steps[i];
  return map;
}

CopyMap map_of_pad(const Shape& x, std::span<const std::int64_t> paddings, const Shape& y) {
  std::array<std::int64_t, Shape::k_max_rank> before{};
  for (std::size_t i = 0; i < x.rank(); ++i) before[i] = paddings[2 * i];
  return inverse_of(map_of_slice(y, before, x));
}

CopyMap inverse_of(const CopyMap& map) {
  return {.shape = map.shape,
          .x_steps = map.y_steps,
          .y_steps = map.x_steps,
          .x_start = map.y_start,
          .y_start = map.x_start};
}

}  // namespace halfstep::backend::cuda::kernels
