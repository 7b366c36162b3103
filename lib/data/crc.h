#pragma once
// The CRC-32 of ZIP and PNG.

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/window_bits.h"

namespace halfstep::data {

/// Continues `crc` (0 to begin with) over more bytes.
inline std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t crc = 0) {
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), k_largest_piece);
    crc = static_cast<std::uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(n)));
    bytes = bytes.subspan(n);
  }
  return crc;
}

}  // namespace halfstep::data
