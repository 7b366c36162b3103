#pragma once
// The readers used by read_image.

#include <cstddef>
#include <span>
#include <string>

#include "core/tensor.h"

namespace halfstep::data {

/// Bounds the memory that a corrupt header can request; no image for a small network is larger.
constexpr std::int64_t k_largest_side = 1 << 14;

bool is_jpeg(std::span<const std::byte> start);
bool is_png(std::span<const std::byte> start);
bool is_pnm(std::span<const std::byte> start);
Tensor read_jpeg(std::span<const std::byte> bytes, const std::string& path);
Tensor read_png(std::span<const std::byte> bytes, const std::string& path);
Tensor read_pnm(std::span<const std::byte> bytes, const std::string& path);

}  // namespace halfstep::data
