#include "backend/cpu/vector/operand.h"

#include <algorithm>

namespace halfstep::backend::cpu::vector {

Operand::Operand(const Loops& loops, DType dtype, const Shape& shape, const Shape& output)
    : source_(loops, dtype) {
  std::array<Axis, Shape::k_max_rank> innermost_first{};
  std::int64_t stride = 1;
  for (std::size_t back = 0; back < output.rank(); ++back) {
    const std::int64_t extent = output[output.rank() - 1 - back];
    const std::int64_t input_extent = back < shape.rank() ? shape[shape.rank() - 1 - back] : 1;
    if (extent == 1) continue;
    const Axis axis{extent, input_extent == 1 ? 0 : stride};
    stride *= input_extent;
    Axis* last = axis_count_ > 0 ? &innermost_first[axis_count_ - 1] : nullptr;
    if (last != nullptr && (last->stride == 0) == (axis.stride == 0)) {
      last->extent *= extent;
    } else {
      innermost_first[axis_count_++] = axis;
    }
  }
  if (axis_count_ == 0) axis_count_ = 1;
  std::reverse_copy(innermost_first.begin(),
                    innermost_first.begin() + static_cast<std::ptrdiff_t>(axis_count_),
                    axes_.begin());
  // One element, or a dense block repeated over all outer axes.
  if (axis_count_ == 1 && axes_[0].stride == 0) period_ = 1;
  if (axis_count_ == 2 && axes_[0].stride == 0 && axes_[1].extent <= k_run) {
    period_ = axes_[1].extent;
  }
}

void Operand::start(const void* data, float* scratch, std::int64_t max_length) const {
  if (period_ == 0) return;
  const float* x = source_.read(data, 0, period_, scratch);
  if (x != scratch) std::copy_n(x, period_, scratch);
  // Repeats the period by doubling.
  const std::int64_t total = period_ + max_length;
  for (std::int64_t filled = period_; filled < total;) {
    const std::int64_t n = std::min(filled, total - filled);
    std::copy_n(scratch, n, scratch + filled);
    filled += n;
  }
}

const float* Operand::read(const void* data, float* scratch, std::int64_t i, std::int64_t n) const {
  if (period_ == 1) return scratch;
  if (period_ > 0) return scratch + i % period_;
  if (axis_count_ == 1) return source_.read(data, i, n, scratch);
  gather(data, scratch, i, n);
  return scratch;
}

void Operand::gather(const void* data, float* scratch, std::int64_t i, std::int64_t n) const {
  std::array<std::int64_t, Shape::k_max_rank> at{};
  std::int64_t offset = 0;
  for (std::size_t axis = axis_count_; axis-- > 0;) {
    at[axis] = i % axes_[axis].extent;
    i /= axes_[axis].extent;
    offset += at[axis] * axes_[axis].stride;
  }
  const std::size_t last = axis_count_ - 1;
  while (n > 0) {
    const std::int64_t length = std::min(n, axes_[last].extent - at[last]);
    if (axes_[last].stride == 0) {
      std::fill_n(scratch, length, *source_.read(data, offset, 1, scratch));
    } else {
      const float* x = source_.read(data, offset, length, scratch);
      if (x != scratch) std::copy_n(x, length, scratch);
    }
    scratch += length;
    n -= length;
    at[last] += length;
    offset += length * axes_[last].stride;
    for (std::size_t axis = last; at[axis] == axes_[axis].extent && axis > 0; --axis) {
      at[axis] = 0;
      offset += axes_[axis - 1].stride - axes_[axis].extent * axes_[axis].stride;
      ++at[axis - 1];
    }
  }
}

}  // namespace halfstep::backend::cpu::vector
