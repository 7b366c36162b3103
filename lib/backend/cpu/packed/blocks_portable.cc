// Packing and epilogues of 32 x 32 blocks in plain loops.

#include <algorithm>
#include <cstring>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "core/half.h"

namespace halfstep::backend::cpu::packed {
namespace {

/// Each part is the remainder after the preceding parts, rounded to bfloat16.
template <class Value, int parts>
void store_parts(std::byte* to, Operand operand, std::int64_t row, std::int64_t k, Value value) {
  if constexpr (parts == 1) {
    std::memcpy(to + offset_in_part(operand, row, k), &value, sizeof value);
    return;
  }
  auto rest = static_cast<float>(value);
  for (int p = 0; p < parts; ++p) {
    const bfloat16 part(rest);
    rest -= static_cast<float>(part);
    std::memcpy(to + p * k_part_bytes + offset_in_part(operand, row, k), &part, sizeof part);
  }
}

template <class X, class Value, int parts, Operand operand, Order order>
void pack_k_block(std::byte* to, const MatrixBlock& x) {
  std::memset(to, 0, static_cast<std::size_t>(k_part_bytes * parts));
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const X* from = static_cast<const X*>(x.data) + i * x.stride;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const auto value = static_cast<Value>(static_cast<float>(from[j]));
      constexpr bool k_along_depth = order == Order::along_depth;
      store_parts<Value, parts>(to, operand, k_along_depth ? i : j, k_along_depth ? j : i, value);
    }
  }
}

template <class Value, int parts, Operand operand>
constexpr PackFunctions k_pack_functions{
    .bfloat16 = {pack_k_block<bfloat16, Value, parts, operand, Order::along_depth>,
                 pack_k_block<bfloat16, Value, parts, operand, Order::across_depth>},
    .float16 = {pack_k_block<float16, Value, parts, operand, Order::along_depth>,
                pack_k_block<float16, Value, parts, operand, Order::across_depth>},
    .float32 = {pack_k_block<float, Value, parts, operand, Order::along_depth>,
                pack_k_block<float, Value, parts, operand, Order::across_depth>}};

float apply_epilogue(const BlockEpilogueArgs& block, std::int64_t row, std::int64_t column) {
  float y = block.accumulators[row / 16 * 512 + column / 16 * 256 + row % 16 * 16 + column % 16];
  if (block.bias != nullptr) y += block.bias[column];
  if (block.relu && y < 0) y = 0;
  if (block.mask != nullptr && (block.mask[row] >> column & 1U) == 0) y = 0;
  return y;
}

template <class T, int parts>
void epilogue(const BlockEpilogueArgs& block) {
  if (block.column_sums != nullptr) std::memset(block.column_sums, 0, k_block_size * sizeof(float));
  if (block.signs != nullptr) std::memset(block.signs, 0, k_block_size * sizeof(std::uint32_t));
  std::uint16_t max_norm = 0;
  for (std::int64_t row = 0; row < k_block_size; ++row) {
    for (std::int64_t column = 0; column < k_block_size; ++column) {
      const bool inside = row < block.rows && column < block.columns;
      const float y = inside ? apply_epilogue(block, row, column) : 0;
      const auto value = static_cast<T>(y);
      const auto rounded = static_cast<float>(value);
      const std::int64_t at = row * block.stride + column;
      if (inside && block.rounded != nullptr) static_cast<T*>(block.rounded)[at] = value;
      if (inside && block.widened != nullptr) block.widened[at] = rounded;
      if (inside && block.unrounded != nullptr) block.unrounded[at] = y;
      if (block.as_a != nullptr) store_parts<T, parts>(block.as_a, Operand::a, row, column, value);
      if (block.as_a_transposed != nullptr)
        store_parts<T, parts>(block.as_a_transposed, Operand::a, column, row, value);
      if (block.as_b != nullptr) store_parts<T, parts>(block.as_b, Operand::b, column, row, value);
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
constexpr FormatKernels k_format{
    .pack = {k_pack_functions<Value, parts, Operand::a>,
             k_pack_functions<Value, parts, Operand::b>},
    .pack_streaming = {{pack_k_block<Value, Value, parts, Operand::a, Order::along_depth>,
                        pack_k_block<Value, Value, parts, Operand::a, Order::across_depth>},
                       {pack_k_block<Value, Value, parts, Operand::b, Order::along_depth>,
                        pack_k_block<Value, Value, parts, Operand::b, Order::across_depth>}},
    .epilogue = epilogue<Value, parts>};

constexpr BlockKernels k_portable_table{.bfloat16 = k_format<bfloat16, 1>,
                                        .float16 = k_format<float16, 1>,
                                        .float16_parts = k_format<float16, 2>,
                                        .fence = fence};

}  // namespace

const FormatKernels& BlockKernels::of(const graph::ops::PackedFormat& format) const {
  if (format.dtype == DType::bfloat16) return bfloat16;
  return format.parts == 1 ? float16 : float16_parts;
}

const BlockKernels& portable_block_kernels() { return k_portable_table; }

}  // namespace halfstep::backend::cpu::packed
