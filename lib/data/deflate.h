#pragma once
// Compression of data held in memory.

#include <cstddef>
#include <span>
#include <vector>

#include "data/inflate.h"

namespace halfstep::data {

/// The bytes as one deflate stream in the given wrapper.
std::vector<std::byte> deflate(std::span<const std::byte> bytes, Wrapper wrapper);

}  // namespace halfstep::data
