#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/conv.h"
#include "backend/cpu/packed/kernels.h"
#include "graph/ops/packed.h"

namespace halfstep::backend::cpu {

const packed::BlockKernels& packed::block_kernels(Isa isa) {
  if (isa >= Isa::avx512_bf16) return avx512_bf16_block_kernels();
  return isa >= Isa::avx512 ? avx512_block_kernels() : portable_block_kernels();
}

const packed::MicroKernel& packed::float32_microkernel(Isa isa) {
  if (isa >= Isa::avx512) return k_avx512_microkernel;
  return isa >= Isa::avx2 ? k_avx2_microkernel : k_portable_microkernel;
}

packed::HalfMicroKernel packed::half_microkernel(Isa isa, DType dtype) {
  if (dtype == DType::float32) return {};
  if (isa >= Isa::amx) return {&k_amx_microkernel, dtype == DType::float16 ? 3 : 1};
  if (isa >= Isa::avx512_bf16 && dtype == DType::bfloat16) return {&k_avx512_bf16_microkernel};
  return {};
}

namespace {

constexpr std::string_view k_amx = "packed/amx";
constexpr std::string_view k_avx512_bf16 = "packed/avx512_bf16";
constexpr std::string_view k_avx512 = "packed/avx512 by float32";
constexpr std::string_view k_direct = "packed/conv direct avx512";
constexpr std::string_view k_conv = "packed/conv amx";
constexpr std::string_view k_conv_by_halves = "packed/conv amx by halves";

Accepts accepts_avx512(const NodeView&, const Capabilities& capabilities) {
  return capabilities.isa >= Isa::avx512 ? Accepts::yes() : Accepts::no("needs avx512");
}

Prepared prepare_pack(const NodeView& node, const Capabilities& capabilities) {
  return packed::prepare_pack(node, packed::block_kernels(capabilities.isa));
}

using AcceptsMatMul = Accepts(const NodeView&, const Capabilities&);

graph::ops::PackedFormat format_of(const NodeView& node) {
  return graph::ops::operand_format(node.attrs());
}

template <AcceptsMatMul accepts>
Accepts accepts_amx(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::amx) return Accepts::no("needs amx");
  if (format_of(node) == graph::ops::PackedFormat{DType::float16, 1}) {
    return Accepts::no("multiplies float16 in two parts");
  }
  return accepts(node, capabilities);
}

template <AcceptsMatMul accepts>
Accepts accepts_avx512_bf16(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::avx512_bf16) return Accepts::no("needs avx512_bf16");
  if (node.attrs().get<DType>("T") != DType::bfloat16) {
    return Accepts::no("partial products of float16 are slower than float32 without amx");
  }
  return accepts(node, capabilities);
}

/// For operands widened to float32, if the instruction set has no faster 16-bit multiplication.
template <AcceptsMatMul accepts>
Accepts accepts_widened(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::avx512) return Accepts::no("needs avx512");
  const graph::ops::PackedFormat format = format_of(node);
  if (format.parts > 1) return Accepts::no("multiplies values as they are");
  const Isa faster = format.dtype == DType::bfloat16 ? Isa::avx512_bf16 : Isa::amx;
  if (capabilities.isa >= faster) {
    return Accepts::no(fmt::format("{} multiplies {} faster", name(faster), name(format.dtype)));
  }
  return accepts(node, capabilities);
}

/// For one dtype, since kernels that split operands into high and low parts have another name.
template <DType dtype>
Accepts accepts_conv(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::amx) return Accepts::no("needs amx");
  if (node.output().dtype != dtype) return Accepts::no(fmt::format("not {}", name(dtype)));
  return packed::accepts_conv(node);
}

template <Prepared (*prepare)(const NodeView&, const packed::ConvMicroKernels&, int)>
Prepared prepare_conv(const NodeView& node, const Capabilities& capabilities) {
  return prepare(node, packed::k_amx_conv_micro_kernels, capabilities.threads);
}

Accepts accepts_direct(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::avx512) return Accepts::no("needs avx512");
  return packed::accepts_direct(node);
}

template <
    Prepared (*prepare)(const NodeView&, const packed::DirectMicroKernels&, const Capabilities&)>
Prepared prepare_direct(const NodeView& node, const Capabilities& capabilities) {
  return prepare(node, packed::k_avx512_direct_micro_kernels, capabilities);
}

template <bool widens>
Accepts accepts_outer(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::avx512) return Accepts::no("needs avx512");
  const DType dtype = node.output().dtype;
  if ((dtype != DType::float32) != widens) return Accepts::no(fmt::format("not {}", name(dtype)));
  if (dtype == DType::bfloat16 && capabilities.isa >= Isa::avx512_bf16) {
    return Accepts::no("avx512_bf16 multiplies bfloat16 faster");
  }
  return packed::accepts_outer_products(node);
}

template <const packed::MicroKernel& micro_kernel>
Prepared prepare_matmul(const NodeView& node, const Capabilities& capabilities) {
  return packed::prepare_matmul(
      node, micro_kernel, packed::block_kernels(capabilities.isa), capabilities.threads);
}

template <const packed::MicroKernel& micro_kernel>
Prepared prepare_matmul_update(const NodeView& node, const Capabilities& capabilities) {
  return packed::prepare_matmul_update(node, micro_kernel, capabilities);
}

}  // namespace

std::span<const Kernel> packed_kernels() {
  constexpr auto k_direct_forward = prepare_direct<packed::prepare_direct_forward>;
  constexpr auto k_direct_filter = prepare_direct<packed::prepare_direct_filter>;
  constexpr auto k_bfloat16 = accepts_conv<DType::bfloat16>,
                 k_float16 = accepts_conv<DType::float16>;
  constexpr auto k_forward = prepare_conv<packed::prepare_conv_forward>;
  constexpr auto k_backward_data = prepare_conv<packed::prepare_conv_backward_data>;
  constexpr auto k_backward_filter = prepare_conv<packed::prepare_conv_backward_filter>;
  static const Kernel k_kernels[] = {
      {"PackOperand", "packed/avx512", accepts_avx512, prepare_pack},
      {"PackedVariable", "packed/avx512", accepts_avx512, prepare_pack},
      {.op = "MatMul",
       .name = "packed/outer products avx512",
       .accepts = accepts_outer<false>,
       .prepare = packed::prepare_outer_products,
       .beats_packing = true},
      {.op = "MatMul",
       .name = "packed/outer products avx512 by float32",
       .accepts = accepts_outer<true>,
       .prepare = packed::prepare_outer_products,
       .widens = true},
      {"PackedMatMul",
       k_amx,
       accepts_amx<packed::accepts_matmul>,
       prepare_matmul<packed::k_amx_microkernel>},
      {"PackedMatMul",
       k_avx512_bf16,
       accepts_avx512_bf16<packed::accepts_matmul>,
       prepare_matmul<packed::k_avx512_bf16_microkernel>},
      {"PackedMatMul",
       k_avx512,
       accepts_widened<packed::accepts_matmul>,
       prepare_matmul<packed::k_avx512_microkernel>},
      {"PackedMatMulUpdate",
       k_amx,
       accepts_amx<packed::accepts_matmul_update>,
       prepare_matmul_update<packed::k_amx_microkernel>},
      {"PackedMatMulUpdate",
       k_avx512_bf16,
       accepts_avx512_bf16<packed::accepts_matmul_update>,
       prepare_matmul_update<packed::k_avx512_bf16_microkernel>},
      {"PackedMatMulUpdate",
       k_avx512,
       accepts_widened<packed::accepts_matmul_update>,
       prepare_matmul_update<packed::k_avx512_microkernel>},
      {"Conv2D", k_direct, accepts_direct, k_direct_forward},
      {"Conv2DBias", k_direct, accepts_direct, k_direct_forward},
      {"Conv2DBackpropFilter", k_direct, accepts_direct, k_direct_filter},
      {"Conv2D", k_conv, k_bfloat16, k_forward},
      {"Conv2D", k_conv_by_halves, k_float16, k_forward},
      {"Conv2DBias", k_conv, k_bfloat16, k_forward},
      {"Conv2DBias", k_conv_by_halves, k_float16, k_forward},
      {"Conv2DBackpropInput", k_conv, k_bfloat16, k_backward_data},
      {"Conv2DBackpropInput", k_conv_by_halves, k_float16, k_backward_data},
      {"Conv2DBackpropFilter", k_conv, k_bfloat16, k_backward_filter},
      {"Conv2DBackpropFilter", k_conv_by_halves, k_float16, k_backward_filter},
  };
  return k_kernels;
}

}  // namespace halfstep::backend::cpu
