#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/conv.h"
#include "backend/cpu/packed/direct.h"
#include "backend/cpu/packed/kernels.h"

namespace halfstep::backend::cpu {

const packed::Blocks& packed::blocks(Isa isa) {
  return isa >= Isa::avx512 ? avx512_blocks() : portable_blocks();
}

namespace {

Accepts accepts_avx512(const NodeView&, const Capabilities& capabilities) {
  return capabilities.isa >= Isa::avx512 ? Accepts::yes() : Accepts::no("needs avx512");
}

Prepared prepare_pack(const NodeView& node, const Capabilities&) {
  return packed::prepare_pack(node, packed::avx512_blocks());
}

using AcceptsOnUnit = Accepts(const NodeView&, const packed::Unit&);

template <AcceptsOnUnit accepts>
Accepts accepts_amx(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::amx) return Accepts::no("needs amx");
  return accepts(node, packed::k_amx_unit);
}

template <AcceptsOnUnit accepts>
Accepts accepts_avx512_bf16(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::avx512_bf16) return Accepts::no("needs avx512_bf16");
  if (node.attrs().get<DType>("T") != DType::bfloat16) {
    return Accepts::no("partial products of float16 are slower than float32 without amx");
  }
  return accepts(node, packed::k_avx512_bf16_unit);
}

/// Rows of one dtype: what is made of halves says so in its name. In bfloat16 some shapes stay with
/// oneDNN, by measurement on one machine.
template <DType dtype>
Accepts accepts_conv(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::amx) return Accepts::no("needs amx");
  if (node.output().dtype != dtype) return Accepts::no(fmt::format("not {}", name(dtype)));
  if (dtype == DType::bfloat16) {
    const bool towards_filter = node.node.op == "Conv2DBackpropFilter";
    const Shape& f = towards_filter ? node.output().shape : node.input(1).shape;
    const bool forward = node.node.op == "Conv2D" || node.node.op == "Conv2DBias";
    if (!towards_filter && f[0] * f[1] == 1) return Accepts::no("a product of pixels");
    if (forward && f[2] > 1 && f[2] * f[1] < 32) return Accepts::no("few channels");
    if (towards_filter && f[2] >= 128 && f[3] >= 128) return Accepts::no("many channels");
  }
  return packed::accepts_conv(node);
}

template <Prepared (*prepare)(const NodeView&, const packed::ConvUnit&, int)>
Prepared prepare_conv(const NodeView& node, const Capabilities& capabilities) {
  return prepare(node, packed::k_amx_conv_unit, capabilities.threads);
}

/// By measurement on one machine with AMX; between AVX512-BF16 and AMX oneDNN's code for bfloat16
/// is the faster one.
Accepts accepts_direct(const NodeView& node, const Capabilities& capabilities) {
  if (capabilities.isa < Isa::avx512) return Accepts::no("needs avx512");
  const bool forward = node.node.op != "Conv2DBackpropFilter";
  const Shape& filter = forward ? node.input(1).shape : node.output().shape;
  const std::int64_t terms = filter.elements(0, 3);
  if (node.output().dtype == DType::bfloat16) {
    if (capabilities.isa == Isa::avx512_bf16) return Accepts::no("has bfloat16 instructions");
    if (capabilities.isa >= Isa::amx && filter[3] > 16) return Accepts::no("many outputs");
  } else if (capabilities.isa >= Isa::amx && forward && terms > 16 && filter[3] > 16) {
    return Accepts::no("many terms and outputs");
  }
  return packed::accepts_direct(node);
}

template <Prepared (*prepare)(const NodeView&, const packed::DirectUnit&, const Capabilities&)>
Prepared prepare_direct(const NodeView& node, const Capabilities& capabilities) {
  return prepare(node, packed::k_avx512_direct_unit, capabilities);
}

constexpr std::string_view k_direct = "packed/conv direct avx512";
constexpr std::string_view k_conv = "packed/conv amx";
constexpr std::string_view k_conv_by_halves = "packed/conv amx by halves";

template <const packed::Unit& unit>
Prepared prepare_product(const NodeView& node, const Capabilities& capabilities) {
  return packed::prepare_product(node, unit, packed::avx512_blocks(), capabilities.threads);
}

template <const packed::Unit& unit>
Prepared prepare_product_update(const NodeView& node, const Capabilities& capabilities) {
  return packed::prepare_product_update(node, unit, capabilities);
}

}  // namespace

std::span<const Kernel> packed_kernels() {
  static const Kernel k_rows[] = {
      {"PackOperand", "packed/avx512", accepts_avx512, prepare_pack},
      {"PackedVariable", "packed/avx512", accepts_avx512, prepare_pack},
      {"PackedMatMul",
       "packed/amx",
       accepts_amx<packed::accepts_product>,
       prepare_product<packed::k_amx_unit>},
      {"PackedMatMul",
       "packed/avx512_bf16",
       accepts_avx512_bf16<packed::accepts_product>,
       prepare_product<packed::k_avx512_bf16_unit>},
      {"PackedMatMulUpdate",
       "packed/amx",
       accepts_amx<packed::accepts_product_update>,
       prepare_product_update<packed::k_amx_unit>},
      {"PackedMatMulUpdate",
       "packed/avx512_bf16",
       accepts_avx512_bf16<packed::accepts_product_update>,
       prepare_product_update<packed::k_avx512_bf16_unit>},
      {"Conv2D", k_direct, accepts_direct, prepare_direct<packed::prepare_direct_forward>},
      {"Conv2DBias", k_direct, accepts_direct, prepare_direct<packed::prepare_direct_forward>},
      {"Conv2DBackpropFilter",
       k_direct,
       accepts_direct,
       prepare_direct<packed::prepare_direct_filter>},
      {"Conv2D", k_conv, accepts_conv<DType::bfloat16>, prepare_conv<packed::prepare_conv_forward>},
      {"Conv2D",
       k_conv_by_halves,
       accepts_conv<DType::float16>,
       prepare_conv<packed::prepare_conv_forward>},
      {"Conv2DBias",
       k_conv,
       accepts_conv<DType::bfloat16>,
       prepare_conv<packed::prepare_conv_forward>},
      {"Conv2DBias",
       k_conv_by_halves,
       accepts_conv<DType::float16>,
       prepare_conv<packed::prepare_conv_forward>},
      {"Conv2DBackpropInput",
       k_conv,
       accepts_conv<DType::bfloat16>,
       prepare_conv<packed::prepare_conv_backward_data>},
      {"Conv2DBackpropInput",
       k_conv_by_halves,
       accepts_conv<DType::float16>,
       prepare_conv<packed::prepare_conv_backward_data>},
      {"Conv2DBackpropFilter",
       k_conv,
       accepts_conv<DType::bfloat16>,
       prepare_conv<packed::prepare_conv_backward_filter>},
      {"Conv2DBackpropFilter",
       k_conv_by_halves,
       accepts_conv<DType::float16>,
       prepare_conv<packed::prepare_conv_backward_filter>},
  };
  return k_rows;
}

}  // namespace halfstep::backend::cpu
