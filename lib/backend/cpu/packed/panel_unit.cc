#include "backend/cpu/packed/panel_unit.h"

#include <algorithm>

namespace halfstep::backend::cpu::packed {
namespace {

using Vector [[gnu::vector_size(16)]] = float;

/// A block of float32: 32 rows of operand a, or 32 reduction elements of operand b.
void pack_wide(const vector::Source& source,
               bool transposed,
               const void* x,
               std::int64_t stride,
               std::int64_t rows,
               std::int64_t columns,
               std::byte* to) {
  const bool whole = rows == k_block && columns == k_block;
  if (transposed && whole && source.loop == nullptr) {
    transpose_block(static_cast<const float*>(x), stride, reinterpret_cast<float*>(to));
    return;
  }
  alignas(64) float scratch[k_block_floats];
  float* block = transposed ? scratch : reinterpret_cast<float*>(to);
  for (std::int64_t r = 0; r < k_block; ++r) {
    float* row = block + r * k_block;
    if (r >= rows) {
      std::fill_n(row, k_block, 0.0F);
      continue;
    }
    const float* values = source.read(x, r * stride, columns, row);
    if (whole) {
      // A copy of constant size is inlined.
      if (values != row) __builtin_memcpy(row, values, k_block * sizeof(float));
      continue;
    }
    if (values != row) std::copy_n(values, columns, row);
    std::fill(row + columns, row + k_block, 0.0F);
  }
  if (transposed) transpose_block(scratch, k_block, reinterpret_cast<float*>(to));
}

/// Packs all of operand a, a run of each row at a time.
void widen_rows(const vector::Source& source,
                const std::byte* x,
                std::int64_t stride,
                const PanelLayout& layout,
                std::byte* to) {
  alignas(64) float run[vector::k_run];
  for (std::int64_t row = 0; row < layout.panels() * k_block; ++row) {
    for (std::int64_t first = 0; first < layout.depth; first += vector::k_run) {
      const std::int64_t n = std::min(vector::k_run, layout.depth - first);
      const std::int64_t padded = graph::ops::packed_padded(n);
      const bool padding = row >= layout.rows;
      if (!padding) source.loop(run, x + (row * stride + first) * source.size, n);
      std::fill(run + (padding ? 0 : n), run + padded, 0.0F);
      for (std::int64_t c = 0; c < padded; c += k_block) {
        __builtin_memcpy(to + layout.step_offset(row / k_block, (first + c) / k_block) +
                             row % k_block * k_block * sizeof(float),
                         run + c,
                         k_block * sizeof(float));
      }
    }
  }
}

bool is_transposed(Side side, Run run) { return (side == Side::a) != (run == Run::along_depth); }

}  // namespace

PanelUnit::PanelUnit(Isa isa, DType dtype, const HalfMicroKernel& half)
    : unit_(half.unit), source_(vector::loops(isa), dtype) {
  if (unit_ == nullptr) {
    unit_ = &float32_microkernel(isa);
    width_ = 2;
  } else {
    format_ = graph::ops::operand_format(dtype, half.products);
    const FormatBlocks& of_format = blocks(isa).of(format_);
    for (int side = 0; side < 2; ++side) {
      pack_[side] = of_format.pack[side].from(dtype);
      pack_floats_[side] = of_format.pack[side].from(DType::float32);
    }
  }
  sweep_ = half.products == 1 ? unit_->sweep.one : unit_->sweep.three;
}

void PanelUnit::pack(Side side,
                     Run run,
                     const std::byte* x,
                     std::int64_t stride,
                     std::int64_t rows,
                     std::int64_t columns,
                     std::byte* to) const {
  if (is_wide()) {
    pack_wide(source_, is_transposed(side, run), x, stride, rows, columns, to);
  } else {
    pack_[static_cast<int>(side)][static_cast<int>(run)](to, x, stride, rows, columns);
  }
}

void PanelUnit::pack(Side side,
                     Run run,
                     const float* x,
                     std::int64_t stride,
                     std::int64_t rows,
                     std::int64_t columns,
                     std::byte* to) const {
  if (is_wide()) {
    pack_wide({}, is_transposed(side, run), x, stride, rows, columns, to);
  } else {
    pack_floats_[static_cast<int>(side)][static_cast<int>(run)](to, x, stride, rows, columns);
  }
}

void PanelUnit::pack_step(Side side,
                          Run run,
                          const std::byte* x,
                          std::int64_t stride,
                          const PanelLayout& layout,
                          std::int64_t panel,
                          std::int64_t step,
                          std::byte* to) const {
  const bool along = run == Run::along_depth;
  const std::int64_t i = along ? panel : step, j = along ? step : panel;
  const std::int64_t rows = along ? layout.rows : layout.depth;
  const std::int64_t columns = along ? layout.depth : layout.rows;
  pack(side,
       run,
       x + (i * k_block * stride + j * k_block) * element_bytes(),
       stride,
       std::min(k_block, rows - i * k_block),
       std::min(k_block, columns - j * k_block),
       to + layout.step_offset(panel, step));
}

void PanelUnit::pack_all(Side side,
                         Run run,
                         const std::byte* x,
                         std::int64_t stride,
                         const PanelLayout& layout,
                         std::byte* to) const {
  if (is_wide() && source_.loop != nullptr && side == Side::a && run == Run::along_depth) {
    return widen_rows(source_, x, stride, layout, to);
  }
  for (std::int64_t panel = 0; panel < layout.panels(); ++panel) {
    for (std::int64_t step = 0; step < layout.steps(); ++step) {
      pack_step(side, run, x, stride, layout, panel, step, to);
    }
  }
}

void PanelUnit::multiply(const std::byte* a,
                         const std::byte* b,
                         const PanelLayout& of_b,
                         std::int64_t first,
                         std::int64_t count,
                         float* scratch,
                         BlockSink sink) const {
  const PanelLayout of_a = layout(k_block, of_b.depth);
  for (std::int64_t kc = 0; kc < of_b.kc_blocks(); ++kc) {
    sweep_({.a = a + of_a.panel_offset(kc, 0),
            .b = b + of_b.panel_offset(kc, first),
            .steps = of_b.steps_in(kc),
            .blocks = count,
            .sums = scratch + 2 * k_block_floats,
            .first = kc == 0,
            .last = kc + 1 == of_b.kc_blocks(),
            .scratch = scratch,
            .finish = sink.finish,
            .context = sink.context});
  }
}

void transpose_block(const float* x, std::int64_t stride, float* to) {
  for (std::int64_t i = 0; i < k_block; i += 4) {
    for (std::int64_t j = 0; j < k_block; j += 4) {
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
        __builtin_memcpy(to + (j + k) * k_block + i, &r[k], sizeof(Vector));
      }
    }
  }
}

void copy_accumulators(const float* sums, std::int64_t rows, std::int64_t stride, float* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* left = sums + row / 16 * 512 + row % 16 * 16;
    // Not std::copy_n, which is a call of memmove for so many bytes.
    __builtin_memcpy(to + row * stride, left, 16 * sizeof(float));
    __builtin_memcpy(to + row * stride + 16, left + 256, 16 * sizeof(float));
  }
}

}  // namespace halfstep::backend::cpu::packed
