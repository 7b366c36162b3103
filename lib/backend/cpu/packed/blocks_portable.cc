// Block work in plain loops.

#include <algorithm>
#include <cstring>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "core/half.h"

namespace halfstep::backend::cpu::packed {
namespace {

/// Each part is the remainder after the preceding parts, rounded to bfloat16.
template <class Value, int parts>
void put(std::byte* step, Side side, std::int64_t row, std::int64_t k, Value value) {
  if constexpr (parts == 1) {
    std::memcpy(step + offset_in_part(side, row, k), &value, sizeof value);
    return;
  }
  auto rest = static_cast<float>(value);
  for (int p = 0; p < parts; ++p) {
    const bfloat16 part(rest);
    rest -= static_cast<float>(part);
    std::memcpy(step + p * k_part_bytes + offset_in_part(side, row, k), &part, sizeof part);
  }
}

template <class X, class Value, int parts, Side side, Run run>
void pack_step(
    std::byte* step, const void* x, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  std::memset(step, 0, static_cast<std::size_t>(k_part_bytes * parts));
  for (std::int64_t i = 0; i < rows; ++i) {
    const X* from = static_cast<const X*>(x) + i * stride;
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto value = static_cast<Value>(static_cast<float>(from[j]));
      constexpr bool k_along = run == Run::along_depth;
      put<Value, parts>(step, side, k_along ? i : j, k_along ? j : i, value);
    }
  }
}

template <class Value, int parts, Side side>
constexpr PackSteps k_pack_steps{
    .bfloat16 = {pack_step<bfloat16, Value, parts, side, Run::along_depth>,
                 pack_step<bfloat16, Value, parts, side, Run::across_depth>},
    .float16 = {pack_step<float16, Value, parts, side, Run::along_depth>,
                pack_step<float16, Value, parts, side, Run::across_depth>},
    .float32 = {pack_step<float, Value, parts, side, Run::along_depth>,
                pack_step<float, Value, parts, side, Run::across_depth>}};

float finished(const FinishBlock& block, std::int64_t row, std::int64_t column) {
  float y = block.sums[row / 16 * 512 + column / 16 * 256 + row % 16 * 16 + column % 16];
  if (block.bias != nullptr) y += block.bias[column];
  if (block.relu && y < 0) y = 0;
  if (block.mask != nullptr && (block.mask[row] >> column & 1U) == 0) y = 0;
  return y;
}

template <class T, int parts>
void finish(const FinishBlock& block) {
  if (block.column_sums != nullptr) std::memset(block.column_sums, 0, k_block * sizeof(float));
  if (block.signs != nullptr) std::memset(block.signs, 0, k_block * sizeof(std::uint32_t));
  std::uint16_t max_norm = 0;
  for (std::int64_t row = 0; row < k_block; ++row) {
    for (std::int64_t column = 0; column < k_block; ++column) {
      const bool inside = row < block.rows && column < block.columns;
      const float y = inside ? finished(block, row, column) : 0;
      const auto value = static_cast<T>(y);
      const auto rounded = static_cast<float>(value);
      const std::int64_t at = row * block.stride + column;
      if (inside && block.rounded != nullptr) static_cast<T*>(block.rounded)[at] = value;
      if (inside && block.widened != nullptr) block.widened[at] = rounded;
      if (inside && block.unrounded != nullptr) block.unrounded[at] = y;
      if (block.side_a != nullptr) put<T, parts>(block.side_a, Side::a, row, column, value);
      if (block.transposed != nullptr) put<T, parts>(block.transposed, Side::a, column, row, value);
      if (block.side_b != nullptr) put<T, parts>(block.side_b, Side::b, column, row, value);
      if (block.column_sums != nullptr) block.column_sums[column] += rounded;
      if (block.signs != nullptr && rounded > 0) block.signs[row] |= 1U << column;
      constexpr unsigned k_magnitude = 0x7fff;
      max_norm = std::max<std::uint16_t>(max_norm, value.bits & k_magnitude);
    }
  }
  if (block.max_norm != nullptr) *block.max_norm = max_norm;
}

void fence() {}

/// Plain loops have no non-temporal stores.
template <class Value, int parts>
constexpr FormatBlocks k_format{
    .pack = {k_pack_steps<Value, parts, Side::a>, k_pack_steps<Value, parts, Side::b>},
    .pack_streaming = {{pack_step<Value, Value, parts, Side::a, Run::along_depth>,
                        pack_step<Value, Value, parts, Side::a, Run::across_depth>},
                       {pack_step<Value, Value, parts, Side::b, Run::along_depth>,
                        pack_step<Value, Value, parts, Side::b, Run::across_depth>}},
    .finish = finish<Value, parts>};

constexpr Blocks k_portable_table{.bfloat16 = k_format<bfloat16, 1>,
                                  .float16 = k_format<float16, 1>,
                                  .float16_parts = k_format<float16, 2>,
                                  .fence = fence};

}  // namespace

const FormatBlocks& Blocks::of(const graph::ops::PackedFormat& format) const {
  if (format.dtype == DType::bfloat16) return bfloat16;
  return format.parts == 1 ? float16 : float16_parts;
}

const Blocks& portable_blocks() { return k_portable_table; }

}  // namespace halfstep::backend::cpu::packed
