#include "core/tensor.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/system.h"

namespace halfstep {
namespace {

/// Converts a double to the float from which a second conversion rounds correctly to 16 bits: round
/// to odd (the neighbour with the last bit set), so that the sticky information survives.
float to_float_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || (std::bit_cast<std::uint32_t>(nearest) & 1U) != 0) {
    return nearest;
  }
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  return std::nextafter(nearest, x > static_cast<double>(nearest) ? k_infinity : -k_infinity);
}

template <class To, class From>
To element_as(From x) {
  if constexpr (std::is_same_v<From, double> && sizeof(To) == 2) {
    return static_cast<To>(to_float_odd(x));
  } else {
    return static_cast<To>(static_cast<Compute<To>>(static_cast<Compute<From>>(x)));
  }
}

}  // namespace

std::byte* allocate_zeroed(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  // GEMM operands and optimizer slots of this size are streamed in full: large pages save TLB
  // misses.
  const bool large = bytes >= 2 * k_large_page_bytes;
  const std::size_t alignment = large ? k_large_page_bytes : AlignedBuffer::k_alignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  // Linux overcommits memory and kills the process that touches too much of it.
  constexpr std::size_t k_much = std::size_t{1} << 30U;
  const std::uint64_t available = bytes < k_much ? bytes : available_memory_bytes();
  if (bytes > available) {
    throw UserError(
        ErrorKind::memory,
        {},
        fmt::format("out of memory: {} bytes are needed, {} available", bytes, available));
  }
  // `rounded` may have wrapped around.
  void* memory = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (memory == nullptr) {
    throw UserError(
        ErrorKind::memory, {}, fmt::format("out of memory: {} bytes are needed", bytes));
  }
  auto* address = static_cast<std::byte*>(memory);
  if (large) prefer_large_pages(address, rounded);
  // First touch: a page is placed on the NUMA node of the thread that writes it first, which is the
  // one that will work on it.
  constexpr std::int64_t k_grain = std::int64_t{1} << 20;
  parallel_for(static_cast<std::int64_t>(bytes), k_grain, [&](auto begin, auto end) {
    std::memset(address + begin, 0, static_cast<std::size_t>(end - begin));
  });
  return address;
}

void release_zeroed(std::byte* memory) noexcept { std::free(memory); }

Tensor::Tensor(DType dtype, const Shape& shape)
    : buffer_(static_cast<std::size_t>(shape.elements()) * size_bytes(dtype)),
      view_{dtype, shape, buffer_.data()} {}

Tensor Tensor::clone() const {
  Tensor copy(dtype(), shape());
  if (bytes() > 0) std::memcpy(copy.view_.data, view_.data, bytes());
  return copy;
}

void Tensor::reshape(const Shape& shape) {
  require(shape.elements() == elements(), "{} as {}", to_string(view_.shape), to_string(shape));
  view_.shape = shape;
}

double element_as_double(const TensorView& view, std::int64_t i) {
  return dispatch(view.dtype, [&]<class T>(Type<T>) {
    return static_cast<double>(static_cast<Compute<T>>(view.as<T>()[i]));
  });
}

void convert(const TensorView& from, const TensorView& to) {
  require(from.elements() == to.elements(),
          "convert {} to {}",
          to_string(from.shape),
          to_string(to.shape));
  const std::int64_t n = from.elements();
  dispatch(from.dtype, [&]<class From>(Type<From>) {
    dispatch(to.dtype, [&]<class To>(Type<To>) {
      const From* x = from.as<From>();
      To* y = to.as<To>();
      for (std::int64_t i = 0; i < n; ++i) {
        y[i] = element_as<To>(x[i]);
      }
    });
  });
}

}  // namespace halfstep
