#pragma once
// The parts of oneDNN's C++ API that differ between its versions 2 and 3. CMake compiles api_v2.cc
// or api_v3.cc for the version it finds; no other file depends on the version.

#include <oneapi/dnnl/dnnl.hpp>

namespace halfstep::backend::cpu::onednn {

/// Strides, dilations (0 is dense) and paddings of the height and the width.
struct ConvWindow {
  dnnl::memory::dims strides, dilations, before, after;
};

/// The tensors of a convolution or of one of its gradients.
struct ConvDescs {
  dnnl::memory::desc x, w, y;
  dnnl::memory::desc bias{};  ///< empty without a bias
};

/// Primitive descriptors on engine() with attributes(). Throw dnnl::error for configurations that
/// oneDNN does not support. A backward descriptor takes that of a forward convolution over the same
/// operands.
dnnl::convolution_forward::primitive_desc convolution_forward(const ConvDescs& tensors,
                                                              const ConvWindow& window);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvDescs& tensors,
    const ConvWindow& window,
    const dnnl::convolution_forward::primitive_desc& forward);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvDescs& tensors,
    const ConvWindow& window,
    const dnnl::convolution_forward::primitive_desc& forward);

/// y = a b, for any engine and attributes.
dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine,
                                    const dnnl::memory::desc& a,
                                    const dnnl::memory::desc& b,
                                    const dnnl::memory::desc& y,
                                    const dnnl::primitive_attr& attributes = {});

/// The value of the instruction set limit that means no limit.
dnnl::cpu_isa unlimited_isa();

}  // namespace halfstep::backend::cpu::onednn
