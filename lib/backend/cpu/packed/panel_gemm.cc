#include "backend/cpu/packed/panel_gemm.h"

#include <algorithm>

namespace halfstep::backend::cpu::packed {
namespace {

using Vector [[gnu::vector_size(16)]] = float;

/// A block of float32: 32 rows of operand a, or 32 reduction elements of operand b.
void pack_float32(const vector::Source& source,
                  bool transposed,
                  const MatrixBlock& x,
                  std::byte* to) {
  const bool full = x.rows == k_block_size && x.columns == k_block_size;
  if (transposed && full && source.loop == nullptr) {
    transpose_block(static_cast<const float*>(x.data), x.stride, reinterpret_cast<float*>(to));
    return;
  }
  alignas(64) float scratch[k_block_floats];
  float* block = transposed ? scratch : reinterpret_cast<float*>(to);
  for (std::int64_t r = 0; r < k_block_size; ++r) {
    float* row = block + r * k_block_size;
    if (r >= x.rows) {
      std::fill_n(row, k_block_size, 0.0F);
      continue;
    }
    const float* values = source.read(x.data, r * x.stride, x.columns, row);
    if (full) {
      // A copy of constant size is inlined.
      if (values != row) __builtin_memcpy(row, values, k_block_size * sizeof(float));
      continue;
    }
    if (values != row) std::copy_n(values, x.columns, row);
    std::fill(row + x.columns, row + k_block_size, 0.0F);
  }
  if (transposed) transpose_block(scratch, k_block_size, reinterpret_cast<float*>(to));
}

/// Packs operand a, in runs of each row.
void widen_rows(const vector::Source& source,
                const std::byte* x,
                std::int64_t stride,
                const PanelLayout& layout,
                std::byte* to) {
  alignas(64) float run[vector::k_run];
  for (std::int64_t row = 0; row < layout.panels() * k_block_size; ++row) {
    for (std::int64_t first = 0; first < layout.depth; first += vector::k_run) {
      const std::int64_t n = std::min(vector::k_run, layout.depth - first);
      const std::int64_t padded = graph::ops::packed_padded(n);
      const bool padding = row >= layout.rows;
      if (!padding) source.loop(run, x + (row * stride + first) * source.size, n);
      std::fill(run + (padding ? 0 : n), run + padded, 0.0F);
      for (std::int64_t c = 0; c < padded; c += k_block_size) {
        __builtin_memcpy(to +
                             layout.k_block_offset(row / k_block_size, (first + c) / k_block_size) +
                             row % k_block_size * k_block_size * sizeof(float),
                         run + c,
                         k_block_size * sizeof(float));
      }
    }
  }
}

bool is_transposed(Operand operand, Order order) {
  return (operand == Operand::a) != (order == Order::along_depth);
}

}  // namespace

PanelGemm::PanelGemm(Isa isa, DType dtype, const HalfMicroKernel& half)
    : micro_kernel_(half.micro_kernel), source_(vector::loops(isa), dtype) {
  if (micro_kernel_ == nullptr) {
    micro_kernel_ = &float32_microkernel(isa);
    width_ = 2;
  } else {
    format_ = graph::ops::operand_format(dtype, half.partial_products);
    const FormatKernels& of_format = block_kernels(isa).of(format_);
    for (int operand = 0; operand < 2; ++operand) {
      pack_[operand] = of_format.pack[operand].from(dtype);
      pack_floats_[operand] = of_format.pack[operand].from(DType::float32);
    }
  }
  run_ = half.partial_products == 1 ? micro_kernel_->run.one : micro_kernel_->run.three;
}

void PanelGemm::pack(Operand operand, Order order, const float* x, std::byte* to) const {
  const MatrixBlock block{x, k_block_size, k_block_size, k_block_size};
  if (is_float32()) return pack_float32({}, is_transposed(operand, order), block, to);
  pack_floats_[static_cast<int>(operand)][static_cast<int>(order)](to, block);
}

void PanelGemm::pack_k_block(Operand operand,
                             Order order,
                             const std::byte* x,
                             std::int64_t stride,
                             const PanelLayout& layout,
                             std::int64_t panel,
                             std::int64_t k_block,
                             std::byte* to) const {
  const bool along = order == Order::along_depth;
  const std::int64_t i = along ? panel : k_block, j = along ? k_block : panel;
  const std::int64_t rows = along ? layout.rows : layout.depth;
  const std::int64_t columns = along ? layout.depth : layout.rows;
  to += layout.k_block_offset(panel, k_block);
  const MatrixBlock block{x + (i * stride + j) * k_block_size * element_bytes(),
                          stride,
                          std::min(k_block_size, rows - i * k_block_size),
                          std::min(k_block_size, columns - j * k_block_size)};
  if (is_float32()) return pack_float32(source_, is_transposed(operand, order), block, to);
  pack_[static_cast<int>(operand)][static_cast<int>(order)](to, block);
}

void PanelGemm::pack_all(Operand operand,
                         Order order,
                         const std::byte* x,
                         std::int64_t stride,
                         const PanelLayout& layout,
                         std::byte* to) const {
  if (is_float32() && source_.loop != nullptr && operand == Operand::a &&
      order == Order::along_depth) {
    return widen_rows(source_, x, stride, layout, to);
  }
  for (std::int64_t panel = 0; panel < layout.panels(); ++panel) {
    for (std::int64_t k_block = 0; k_block < layout.k_blocks(); ++k_block) {
      pack_k_block(operand, order, x, stride, layout, panel, k_block, to);
    }
  }
}

void PanelGemm::multiply(const std::byte* a,
                         const std::byte* b,
                         const PanelLayout& b_layout,
                         std::int64_t first,
                         std::int64_t count,
                         float* scratch,
                         BlockCallback epilogue) const {
  const PanelLayout a_layout = layout(k_block_size, b_layout.depth);
  for (std::int64_t kc = 0; kc < b_layout.kc_blocks(); ++kc) {
    run_({.a = a + a_layout.panel_offset(kc, 0),
          .b = b + b_layout.panel_offset(kc, first),
          .k_blocks = b_layout.k_blocks_in(kc),
          .blocks = count,
          .accumulators = scratch + 2 * k_block_floats,
          .first = kc == 0,
          .last = kc + 1 == b_layout.kc_blocks(),
          .scratch = scratch,
          .epilogue = epilogue.call,
          .context = epilogue.context});
  }
}

void transpose_block(const float* x, std::int64_t stride, float* to) {
  for (std::int64_t i = 0; i < k_block_size; i += 4) {
    for (std::int64_t j = 0; j < k_block_size; j += 4) {
      Vector r[4];
      for (int k = 0; k < 4; ++k) {
        __builtin_memcpy(&r[k], x + (i + k) * stride + j, sizeof(Vector));
      }
      const Vector a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
      const Vector b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
      const Vector c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
      const Vector d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
      r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
      r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
      r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
      r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
      for (int k = 0; k < 4; ++k) {
        __builtin_memcpy(to + (j + k) * k_block_size + i, &r[k], sizeof(Vector));
      }
    }
  }
}

void copy_accumulators(const float* accumulators,
                       std::int64_t rows,
                       std::int64_t stride,
                       float* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* left = accumulators + row / 16 * 512 + row % 16 * 16;
    // std::copy_n would call memmove for so many bytes.
    __builtin_memcpy(to + row * stride, left, 16 * sizeof(float));
    __builtin_memcpy(to + row * stride + 16, left + 256, 16 * sizeof(float));
  }
}

}  // namespace halfstep::backend::cpu::packed
