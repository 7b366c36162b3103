#include "backend/cpu/recurrent/panel_matmul.h"

#include <algorithm>

#include "core/parallel.h"

namespace halfstep::backend::cpu::recurrent {
namespace {

using packed::k_block;
using packed::Run;
using packed::Side;

constexpr std::int64_t k_block_sums = k_block * k_block;

/// The destination of complete blocks of sums.
struct Rows {
  float* z;
  std::int64_t stride, rows;
};

/// Four tiles of 16 x 16 to rows.
void copy_block(void* context, const float* sums, std::int64_t block) {
  const Rows& to = *static_cast<const Rows*>(context);
  for (std::int64_t row = 0; row < to.rows; ++row) {
    const float* left = sums + row / 16 * 512 + row % 16 * 16;
    float* z = to.z + row * to.stride + block * k_block;
    std::copy_n(left, 16, z);
    std::copy_n(left + 256, 16, z + 16);
  }
}

}  // namespace

PanelMatMul::PanelMatMul(Isa isa,
                         DType dtype,
                         const packed::HalfMicroKernel& half,
                         std::int64_t depth,
                         std::int64_t columns,
                         bool transposed)
    : transposed_(transposed), source_(vector::loops(isa), dtype) {
  graph::ops::PackedFormat format{DType::bfloat16, 1};
  if (half.unit == nullptr) {
    unit_ = &packed::float32_microkernel(isa);
    width_ = 2;
  } else {
    unit_ = half.unit;
    format = graph::ops::operand_format(dtype, half.products);
    const packed::FormatBlocks& blocks = packed::blocks(isa).of(format);
    pack_a_ = blocks.pack[0].from(dtype)[static_cast<int>(Run::along_depth)];
    pack_b_ = blocks.pack[1].from(
        dtype)[static_cast<int>(transposed ? Run::along_depth : Run::across_depth)];
  }
  sweep_ = half.products == 1 ? unit_->sweep.one : unit_->sweep.three;
  a_ = {k_block, depth, format};
  b_ = {columns, depth, format};
}

std::int64_t PanelMatMul::scratch_bytes() const {
  const std::int64_t sums = (b_.kc_blocks() > 1 ? b_.panels() : 0) + 2;
  return a_.bytes() * width_ + sums * k_block_sums * static_cast<std::int64_t>(sizeof(float));
}

void PanelMatMul::pack(const std::byte* kernel, std::byte* to) const {
  const std::int64_t steps = b_.steps();
  constexpr std::int64_t k_grain = 16;
  parallel_for(b_.panels() * steps, k_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t panel = t / steps, step = t % steps;
      if (width_ > 1) {
        pack_wide_block(kernel, to, panel, step);
        continue;
      }
      const std::int64_t columns = std::min(k_block, b_.rows - panel * k_block);
      const std::int64_t depth = std::min(k_block, b_.depth - step * k_block);
      const std::int64_t stride = transposed_ ? b_.depth : b_.rows;
      const std::int64_t first = transposed_ ? panel * k_block * stride + step * k_block
                                             : step * k_block * stride + panel * k_block;
      pack_b_(to + b_.step_offset(panel, step),
              kernel + first * source_.size,
              stride,
              transposed_ ? columns : depth,
              transposed_ ? depth : columns);
    }
  });
}

/// A block of float32: 32 reduction elements of 32 columns.
void PanelMatMul::pack_wide_block(const std::byte* kernel,
                                  std::byte* to,
                                  std::int64_t panel,
                                  std::int64_t step) const {
  auto* block = reinterpret_cast<float*>(to + b_.step_offset(panel, step) * width_);
  const std::int64_t columns = std::min(k_block, b_.rows - panel * k_block);
  const std::int64_t depth = std::min(k_block, b_.depth - step * k_block);
  std::fill_n(block, k_block_sums, 0.0F);
  float scratch[k_block];
  if (!transposed_) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t first = (step * k_block + k) * b_.rows + panel * k_block;
      std::copy_n(source_.read(kernel, first, columns, scratch), columns, block + k * k_block);
    }
    return;
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    const std::int64_t first = (panel * k_block + c) * b_.depth + step * k_block;
    const float* row = source_.read(kernel, first, depth, scratch);
    for (std::int64_t k = 0; k < depth; ++k) block[k * k_block + c] = row[k];
  }
}

void PanelMatMul::pack_panel(const std::byte* x,
                             std::int64_t stride,
                             std::int64_t rows,
                             std::byte* to) const {
  for (std::int64_t step = 0; step < a_.steps(); ++step) {
    const std::int64_t depth = std::min(k_block, a_.depth - step * k_block);
    const std::byte* from = x + step * k_block * source_.size;
    std::byte* block = to + a_.step_offset(0, step) * width_;
    if (width_ == 1) {
      pack_a_(block, from, stride, rows, depth);
      continue;
    }
    auto* row = reinterpret_cast<float*>(block);
    for (std::int64_t r = 0; r < k_block; ++r, row += k_block) {
      if (r >= rows) {
        std::fill_n(row, k_block, 0.0F);
        continue;
      }
      const float* values = source_.read(from, r * stride, depth, row);
      if (values != row) std::copy_n(values, depth, row);
      std::fill(row + depth, row + k_block, 0.0F);
    }
  }
}

void PanelMatMul::multiply(const std::byte* x,
                           std::int64_t x_stride,
                           std::int64_t rows,
                           const std::byte* b,
                           std::byte* scratch,
                           float* z) const {
  std::byte* a = scratch;
  auto* finished = reinterpret_cast<float*>(scratch + a_.bytes() * width_);
  pack_panel(x, x_stride, rows, a);
  Rows to{z, stride(), rows};
  for (std::int64_t kc = 0; kc < b_.kc_blocks(); ++kc) {
    sweep_({.a = a + a_.panel_offset(kc, 0) * width_,
            .b = b + b_.panel_offset(kc, 0) * width_,
            .steps = b_.steps_in(kc),
            .blocks = b_.panels(),
            .sums = finished + 2 * k_block_sums,
            .first = kc == 0,
            .last = kc + 1 == b_.kc_blocks(),
            .scratch = finished,
            .finish = copy_block,
            .context = &to,
            .ahead = b,
            .lines_ahead = 0});
  }
}

}  // namespace halfstep::backend::cpu::recurrent
