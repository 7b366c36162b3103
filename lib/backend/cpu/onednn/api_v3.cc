// oneDNN 3: a primitive descriptor is constructed from its arguments.

#include "backend/cpu/onednn/api.h"
#include "backend/cpu/onednn/program.h"

namespace halfstep::backend::cpu::onednn {

using dnnl::algorithm;

dnnl::convolution_forward::primitive_desc convolution_forward(const ConvDescs& t,
                                                              const ConvWindow& w) {
  return {engine(),
          dnnl::prop_kind::forward_training,
          algorithm::convolution_direct,
          t.x,
          t.w,
          t.bias,
          t.y,
          w.strides,
          w.dilations,
          w.before,
          w.after,
          attributes()};
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvDescs& t,
    const ConvWindow& w,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine(),
          algorithm::convolution_direct,
          t.x,
          t.w,
          t.y,
          w.strides,
          w.dilations,
          w.before,
          w.after,
          forward,
          attributes()};
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvDescs& t,
    const ConvWindow& w,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine(),
          algorithm::convolution_direct,
          t.x,
          t.w,
          t.y,
          w.strides,
          w.dilations,
          w.before,
          w.after,
          forward,
          attributes()};
}

dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine,
                                    const dnnl::memory::desc& a,
                                    const dnnl::memory::desc& b,
                                    const dnnl::memory::desc& y,
                                    const dnnl::primitive_attr& attributes) {
  return {engine, a, b, y, attributes};
}

dnnl::cpu_isa unlimited_isa() { return dnnl::cpu_isa::isa_default; }

}  // namespace halfstep::backend::cpu::onednn
