#pragma once
// The extents of a dense row-major tensor.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace halfstep {

/// Up to eight extents, outermost first; rank 0 is a scalar with one element.
class Shape {
 public:
  static constexpr std::size_t k_max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims)
      : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  /// Errors: InternalError for more than k_max_rank extents or a negative one.
  explicit Shape(std::span<const std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  std::int64_t back() const { return dims_[rank_ - 1]; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }

  /// The product of the extents.
  std::int64_t elements() const;
  /// Elements of [first, last) axes multiplied.
  std::int64_t elements(std::size_t first, std::size_t last) const;
  /// This shape with extent `i` replaced.
  Shape with(std::size_t i, std::int64_t extent) const;

  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, k_max_rank> dims_{};
  std::size_t rank_ = 0;
};

/// "[32, 28, 28, 1]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

/// Whether one shape only merges or splits axes of the other, so that axes keep their meaning.
/// Three axes are height, width and channels, which are not interchangeable.
bool same_axes(const Shape& a, const Shape& b);

/// The axis counted from the front; a negative `axis` counts from the end.
inline std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// Strides in elements along each axis.
using Strides = std::array<std::int64_t, Shape::k_max_rank>;

/// The strides of a dense row-major tensor.
Strides dense_strides(const Shape& shape);

/// The strides with which `operand` is read when broadcast to `shape`: 0 along broadcast axes.
Strides broadcast_strides(const Shape& operand, const Shape& shape);

/// NumPy's broadcast of two shapes, or nothing when they do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace halfstep
