#pragma once
// zlib's encoding of the wrapper of a stream.

#include <zlib.h>

#include "data/inflate.h"

namespace halfstep::data {

inline int window_bits(Wrapper wrapper) {
  switch (wrapper) {
    case Wrapper::none:
      return -MAX_WBITS;
    case Wrapper::zlib:
      return MAX_WBITS;
    case Wrapper::gzip:
      return MAX_WBITS + 16;
  }
  return 0;
}

// zlib's counters have 32 bits.
constexpr std::size_t k_largest_piece = std::size_t{1} << 30;

}  // namespace halfstep::data
