#pragma once
// Byte order conversion of file contents. halfstep itself runs on little-endian machines only.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace halfstep::data {

static_assert(std::endian::native == std::endian::little, "halfstep needs a little-endian machine");

template <class T>
T load_le(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Reverses the bytes of each of the elements of `width` bytes.
inline void swap_bytes(std::span<std::byte> elements, std::size_t width) {
  for (std::size_t at = 0; at + width <= elements.size(); at += width) {
    for (std::size_t i = 0; i < width / 2; ++i) {
      std::swap(elements[at + i], elements[at + width - 1 - i]);
    }
  }
}

template <class T>
T load_be(const std::byte* from) {
  std::byte reversed[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) reversed[i] = from[sizeof(T) - 1 - i];
  return load_le<T>(reversed);
}

/// Bytes of a tensor with these extents, or nothing when the number does not fit 63 bits.
inline std::optional<std::uint64_t> byte_count(std::span<const std::int64_t> extents,
                                               std::size_t element_bytes) {
  constexpr std::uint64_t limit = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = element_bytes;
  // An empty axis makes the size 0, but the product of the others must still not overflow later.
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    const auto n = static_cast<std::uint64_t>(extent);
    if (n > 1 && bytes > limit / n) return std::nullopt;
    if (n > 1) bytes *= n;
  }
  for (const std::int64_t extent : extents) {
    if (extent == 0) return 0;
  }
  return bytes;
}

}  // namespace halfstep::data
