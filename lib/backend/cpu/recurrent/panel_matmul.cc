#include "backend/cpu/recurrent/panel_matmul.h"

#include <algorithm>

#include "core/parallel.h"

namespace halfstep::backend::cpu::recurrent {
namespace {

using packed::k_block_size;
using packed::Operand;
using packed::Order;

/// The destination of complete blocks of accumulators.
struct Destination {
  float* z;
  std::int64_t stride, rows;
};

void copy_block(void* context, const float* accumulators, std::int64_t block) {
  const Destination& to = *static_cast<const Destination*>(context);
  packed::copy_accumulators(accumulators, to.rows, to.stride, to.z + block * k_block_size);
}

}  // namespace

PanelMatMul::PanelMatMul(Isa isa,
                         DType dtype,
                         const packed::HalfMicroKernel& half,
                         std::int64_t depth,
                         std::int64_t columns,
                         bool transposed)
    : transposed_(transposed),
      gemm_(isa, dtype, half),
      a_(gemm_.layout(k_block_size, depth)),
      b_(gemm_.layout(columns, depth)) {}

std::int64_t PanelMatMul::scratch_bytes() const {
  const std::int64_t blocks = (b_.kc_blocks() > 1 ? b_.panels() : 0) + 2;
  return a_.bytes() + blocks * packed::k_block_floats * static_cast<std::int64_t>(sizeof(float));
}

void PanelMatMul::pack(const std::byte* kernel, std::int64_t stride, std::byte* to) const {
  const std::int64_t k_blocks = b_.k_blocks();
  constexpr std::int64_t k_grain = 16;
  parallel_for_each(b_.panels() * k_blocks, k_grain, [&](std::int64_t t) {
    gemm_.pack_k_block(Operand::b,
                       transposed_ ? Order::along_depth : Order::across_depth,
                       kernel,
                       stride,
                       b_,
                       t / k_blocks,
                       t % k_blocks,
                       to);
  });
}

void PanelMatMul::multiply(const std::byte* x,
                           std::int64_t x_stride,
                           std::int64_t rows,
                           const std::byte* b,
                           std::byte* scratch,
                           float* z) const {
  std::byte* a = scratch;
  packed::PanelLayout layout = a_;
  layout.rows = rows;
  gemm_.pack_all(Operand::a, Order::along_depth, x, x_stride, layout, a);
  Destination to{z, stride(), rows};
  gemm_.multiply(
      a, b, b_, 0, b_.panels(), reinterpret_cast<float*>(scratch + a_.bytes()), {copy_block, &to});
}

}  // namespace halfstep::backend::cpu::recurrent
