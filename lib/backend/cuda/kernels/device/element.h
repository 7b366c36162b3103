#pragma once
// Loading, storing and packing of elements.

#include <cstdint>
#include <type_traits>

#include "backend/cuda/kernels/shim/compat.h"
#include "core/compute.h"

namespace halfstep::backend::cuda::kernels {

/// An element in its compute type.
template <class T>
__device__ inline Compute<T> load(T x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return to_float(x);
  } else {
    return x;
  }
}

/// A result in the compute type as an element, rounded to nearest even.
template <class T, class C>
__device__ inline T store(C x) {
  if constexpr (std::is_same_v<T, float16>) {
    return to_float16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_bfloat16(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

/// The accumulator type of sums of T.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, Compute<T>>;

template <class T>
__device__ inline Sum<T> load_sum(T x) {
  return static_cast<Sum<T>>(load(x));
}

/// Elements that are loaded or stored by one instruction.
template <class T, int width>
struct [[gnu::may_alias]] alignas(sizeof(T) * width) Pack {
  T element[width];
};

/// `p` must be aligned like the pack.
template <class T, int width>
__device__ inline Pack<T, width> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, width>*>(p);
}

template <class T, int width>
__device__ inline void store_pack(T* p, const Pack<T, width>& pack) {
  store_at_once(reinterpret_cast<Pack<T, width>*>(p), pack);
}

/// i / n and i % n of numbers that are not negative, by a 32-bit division where both fit: it takes
/// a fraction of the time of a 64-bit one.
struct Divided {
  std::int64_t quotient, remainder;
};
__device__ inline Divided divide(std::int64_t i, std::int64_t n) {
  if ((static_cast<std::uint64_t>(i) | static_cast<std::uint64_t>(n)) >> 32U != 0) {
    return {i / n, i % n};
  }
  const auto a = static_cast<std::uint32_t>(i);
  const auto b = static_cast<std::uint32_t>(n);
  return {a / b, a % b};
}

/// The coordinates of an element of an NHWC tensor.
struct NhwcCoordinate {
  std::int64_t image, row, column, channel;
};

/// The extents of an image of an NHWC tensor.
struct NhwcShape {
  std::int64_t height, width, channels;

  __device__ NhwcCoordinate coordinate(std::int64_t i) const {
    const Divided pixel = divide(i, channels);
    const Divided line = divide(pixel.quotient, width);
    const Divided image = divide(line.quotient, height);
    return {image.quotient, image.remainder, line.remainder, pixel.remainder};
  }
  /// The offset of pixel (row, column) in the image and channel of `p`.
  __device__ std::int64_t offset(const NhwcCoordinate& p,
                                 std::int64_t row,
                                 std::int64_t column) const {
    return ((p.image * height + row) * width + column) * channels + p.channel;
  }
};

/// The thread's index in the grid, and the number of threads.
__device__ inline std::int64_t thread_of_grid() { return block() * threads() + thread(); }
__device__ inline std::int64_t threads_of_grid() { return blocks() * threads(); }

}  // namespace halfstep::backend::cuda::kernels
