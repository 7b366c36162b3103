#include "backend/cpu/recurrent/panel_matmul.h"

#include <algorithm>

#include "core/parallel.h"

namespace halfstep::backend::cpu::recurrent {
namespace {

using packed::k_block;
using packed::Run;
using packed::Side;

/// The destination of complete blocks of accumulators.
struct Rows {
  float* z;
  std::int64_t stride, rows;
};

void copy_block(void* context, const float* sums, std::int64_t block) {
  const Rows& to = *static_cast<const Rows*>(context);
  packed::copy_accumulators(sums, to.rows, to.stride, to.z + block * k_block);
}

}  // namespace

PanelMatMul::PanelMatMul(Isa isa,
                         DType dtype,
                         const packed::HalfMicroKernel& half,
                         std::int64_t depth,
                         std::int64_t columns,
                         bool transposed)
    : transposed_(transposed),
      unit_(isa, dtype, half),
      a_(unit_.layout(k_block, depth)),
      b_(unit_.layout(columns, depth)) {}

std::int64_t PanelMatMul::scratch_bytes() const {
  const std::int64_t sums = (b_.kc_blocks() > 1 ? b_.panels() : 0) + 2;
  return a_.bytes() + sums * packed::k_block_floats * static_cast<std::int64_t>(sizeof(float));
}

void PanelMatMul::pack(const std::byte* kernel, std::int64_t stride, std::byte* to) const {
  const std::int64_t steps = b_.steps();
  constexpr std::int64_t k_grain = 16;
  parallel_for(b_.panels() * steps, k_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      unit_.pack_step(Side::b,
                      transposed_ ? Run::along_depth : Run::across_depth,
                      kernel,
                      stride,
                      b_,
                      t / steps,
                      t % steps,
                      to);
    }
  });
}

void PanelMatMul::multiply(const std::byte* x,
                           std::int64_t x_stride,
                           std::int64_t rows,
                           const std::byte* b,
                           std::byte* scratch,
                           float* z) const {
  std::byte* a = scratch;
  packed::PanelLayout of_rows = a_;
  of_rows.rows = rows;
  unit_.pack_all(Side::a, Run::along_depth, x, x_stride, of_rows, a);
  Rows to{z, stride(), rows};
  unit_.multiply(
      a, b, b_, 0, b_.panels(), reinterpret_cast<float*>(scratch + a_.bytes()), {copy_block, &to});
}

}  // namespace halfstep::backend::cpu::recurrent
