#include "core/shape.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/ranges.h"

namespace halfstep {

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  require(dims.size() <= k_max_rank, "rank {} is above {}", dims.size(), k_max_rank);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    require(dims[i] >= 0, "extent {} of a shape is {}", i, dims[i]);
    dims_[i] = dims[i];
  }
}

std::int64_t Shape::elements() const { return elements(0, rank_); }

/// Errors: UserError(memory) above 2^58 elements, whose bytes would not fit in 63 bits.
std::int64_t Shape::elements(std::size_t first, std::size_t last) const {
  constexpr std::int64_t k_max_elements = std::int64_t{1} << 58;
  const std::span<const std::int64_t> wanted = dims().subspan(first, last - first);
  std::int64_t product = 1;
  bool fits = true;
  for (const std::int64_t extent : wanted) {
    fits = !__builtin_mul_overflow(product, extent, &product) && product <= k_max_elements && fits;
  }
  if (fits) return product;
  // An empty axis makes the tensor empty, however long the others are.
  if (contains(wanted, 0)) return 0;
  throw UserError(
      ErrorKind::memory,
      {},
      fmt::format("a tensor of shape {} has more elements than memory can hold", to_string(*this)));
}

Shape Shape::with(std::size_t i, std::int64_t extent) const {
  require(i < rank_, "extent {} of rank {}", i, rank_);
  Shape shape = *this;
  shape.dims_[i] = extent;
  return shape;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

bool same_axes(const Shape& a, const Shape& b) {
  if (a.rank() == 3 && b.rank() == 3) return a == b;
  const auto boundaries = [](const Shape& shape) {
    std::set<std::int64_t> products;
    for (std::size_t i = 1; i <= shape.rank(); ++i) products.insert(shape.elements(0, i));
    products.erase(1);
    return products;
  };
  const std::set<std::int64_t> of_a = boundaries(a), of_b = boundaries(b);
  return std::includes(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) ||
         std::includes(of_b.begin(), of_b.end(), of_a.begin(), of_a.end());
}

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

Strides broadcast_strides(const Shape& operand, const Shape& shape) {
  const Strides dense = dense_strides(operand);
  const std::size_t lead = shape.rank() - operand.rank();
  Strides strides{};
  for (std::size_t axis = 0; axis < operand.rank(); ++axis) {
    strides[lead + axis] = operand[axis] == shape[lead + axis] ? dense[axis] : 0;
  }
  return strides;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::k_max_rank> dims{};
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t from_end = rank - i;
    const std::int64_t x = from_end <= a.rank() ? a[a.rank() - from_end] : 1;
    const std::int64_t y = from_end <= b.rank() ? b[b.rank() - from_end] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    dims[i] = x == 1 ? y : x;
  }
  return Shape(std::span<const std::int64_t>(dims.data(), rank));
}

}  // namespace halfstep
