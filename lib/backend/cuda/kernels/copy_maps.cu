// The strided copies of the ops that move elements.

#include "backend/cuda/kernels/array.h"
#include "backend/cuda/kernels/device/walk.h"

namespace halfstep::backend::cuda::kernels {
namespace {

std::size_t front(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

}  // namespace

CopyMap map_of_broadcast(const Shape& x, const Shape& y) {
  return {.shape = y, .x_steps = broadcast_steps(x, y), .y_steps = dense_steps(y)};
}

CopyMap map_of_transpose(const Shape& x, std::span<const std::int64_t> permutation) {
  const Steps dense = dense_steps(x);
  CopyMap map;
  std::array<std::int64_t, Shape::k_max_rank> extents{};
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const std::size_t axis = front(permutation[i], x.rank());
    extents[i] = x[axis];
    map.x_steps[i] = dense[axis];
  }
  map.shape = Shape(std::span<const std::int64_t>(extents.data(), x.rank()));
  map.y_steps = dense_steps(map.shape);
  return map;
}

CopyMap map_of_reverse(const Shape& x, std::span<const std::int64_t> axes) {
  CopyMap map{.shape = x, .x_steps = dense_steps(x), .y_steps = dense_steps(x)};
  for (std::int64_t named : axes) {
    const std::size_t axis = front(named, x.rank());
    map.x_start += (x[axis] - 1) * map.x_steps[axis];
    map.x_steps[axis] = -map.x_steps[axis];
  }
  return map;
}

CopyMap map_of_slice(const Shape& x, std::span<const std::int64_t> begin, const Shape& y) {
  CopyMap map{.shape = y, .x_steps = dense_steps(x), .y_steps = dense_steps(y)};
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
