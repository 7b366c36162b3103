// Convolutions of x [N,H,W,C] with filters [h,w,C/groups,O], and their gradients. Depthwise filters
// [h,w,C,M] lie in memory like grouped ones. Activations stay in their layout where oneDNN has
// generated code for it; weights always go into the layout of its choice.
// Stored dtypes: float32, bfloat16, float16; accumulated in float32, rounded once.

#include <string>

#include "backend/cpu/onednn/program.h"
#include "backend/cpu/onednn/rows.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::onednn {
namespace {

using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;

/// A convolution in oneDNN's words.
struct Conv {
  dnnl::memory::dims x, w, y;  ///< [N,C,H,W], [G,O/G,C/G,h,w] or [O,C,h,w], [N,O,H,W]
  dnnl::memory::dims strides, dilations, before, after;
  bool grouped = false;
};

bool is_depthwise(const NodeView& node) { return node.node.op.starts_with("Depthwise"); }

ConvGeometry geometry(const NodeView& node, const Shape& x, const Shape& filter) {
  return is_depthwise(node) ? graph::ops::depthwise_geometry(node.attrs(), x, filter)
                            : graph::ops::conv_geometry(node.attrs(), x, filter);
}

Conv conv(const ConvGeometry& g) {
  const WindowAxis& h = g.window.height;
  const WindowAxis& w = g.window.width;
  Conv c;
  c.grouped = g.groups > 1;
  c.x = {g.batch, g.inputs, h.input, w.input};
  c.y = {g.batch, g.outputs, h.output, w.output};
  c.w = {g.group_outputs, g.group_inputs, h.size, w.size};
  if (c.grouped) c.w.insert(c.w.begin(), g.groups);
  c.strides = {h.stride, w.stride};
  c.dilations = {h.dilation - 1, w.dilation - 1};
  c.before = {h.pad_before, w.pad_before};
  c.after = {h.pad_after, w.pad_after};
  return c;
}

/// What the primitive may choose itself.
enum class Freedom { weights, all };

struct Descs {
  dnnl::memory::desc x, w, y;
};

/// The tensors as they lie in memory.
Descs stored(const Program& program, const Conv& c) {
  return {program.dense(c.x, {0, 2, 3, 1}),
          c.grouped ? program.dense(c.w, {3, 4, 2, 0, 1}) : program.dense(c.w, {2, 3, 1, 0}),
          program.dense(c.y, {0, 2, 3, 1})};
}

Descs wanted(const Program& program, const Conv& c, Freedom freedom) {
  Descs d = stored(program, c);
  d.w = program.any(c.w);
  if (freedom == Freedom::all) {
    d.x = program.any(c.x);
    d.y = program.any(c.y);
  }
  return d;
}

dnnl::convolution_forward::primitive_desc forward(const Conv& c, const Descs& d) {
  return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training,
                                          dnnl::algorithm::convolution_direct,
                                          d.x,
                                          d.w,
                                          d.y,
                                          c.strides,
                                          c.dilations,
                                          c.before,
                                          c.after),
          attributes(),
          engine()};
}

dnnl::convolution_backward_data::primitive_desc backward_data(const Conv& c, const Descs& d) {
  return {dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct,
                                                d.x,
                                                d.w,
                                                d.y,
                                                c.strides,
                                                c.dilations,
                                                c.before,
                                                c.after),
          attributes(),
          engine(),
          forward(c, d)};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights(const Conv& c, const Descs& d) {
  return {dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct,
                                                   d.x,
                                                   d.w,
                                                   d.y,
                                                   c.strides,
                                                   c.dilations,
                                                   c.before,
                                                   c.after),
          attributes(),
          engine(),
          forward(c, d)};
}

/// Whether an implementation is code generated for the shape, not loops or a lowering to gemm.
bool is_generated(const std::string& implementation) {
  return !implementation.starts_with("ref") && implementation.find("gemm:") == std::string::npos;
}

/// The primitive over plain activations when it is generated code; else, if there is one, the
/// generated code over layouts of oneDNN's choice.
template <class Make>
auto choose(const Program& program, const Conv& c, const Make& make) {
  auto plain = make(c, wanted(program, c, Freedom::weights));
  if (is_generated(plain.impl_info_str())) return plain;
  auto free = make(c, wanted(program, c, Freedom::all));
  return is_generated(free.impl_info_str()) ? free : plain;
}

Prepared build_forward(const NodeView& node,
                       const Capabilities& capabilities,
                       Arithmetic arithmetic) {
  const Conv c = conv(geometry(node, node.input(0).shape, node.input(1).shape));
  Program program(node, arithmetic, capabilities);
  const Descs user = stored(program, c);
  const auto how = choose(program, c, forward);
  const auto x = program.in_layout(program.input(0, user.x), how.src_desc());
  const auto w = program.in_layout(program.input(1, user.w), how.weights_desc());
  const auto y = program.for_layout(program.output(0, user.y), how.dst_desc());
  program.run(dnnl::convolution_forward(how),
              how.scratchpad_desc(),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
  return program.finish();
}

Prepared build_backward_data(const NodeView& node,
                             const Capabilities& capabilities,
                             Arithmetic arithmetic) {
  const Conv c = conv(geometry(node, node.output().shape, node.input(1).shape));
  Program program(node, arithmetic, capabilities);
  const Descs user = stored(program, c);
  const auto how = choose(program, c, backward_data);
  const auto w = program.in_layout(program.input(1, user.w), how.weights_desc());
  const auto dy = program.in_layout(program.input(2, user.y), how.diff_dst_desc());
  const auto dx = program.for_layout(program.output(0, user.x), how.diff_src_desc());
  program.run(dnnl::convolution_backward_data(how),
              how.scratchpad_desc(),
              {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx}});
  return program.finish();
}

Prepared build_backward_weights(const NodeView& node,
                                const Capabilities& capabilities,
                                Arithmetic arithmetic) {
  const Conv c = conv(geometry(node, node.input(0).shape, node.output().shape));
  Program program(node, arithmetic, capabilities);
  const Descs user = stored(program, c);
  const auto how = choose(program, c, backward_weights);
  const auto x = program.in_layout(program.input(0, user.x), how.src_desc());
  const auto dy = program.in_layout(program.input(2, user.y), how.diff_dst_desc());
  const auto dw = program.for_layout(program.output(0, user.w), how.diff_weights_desc());
  program.run(dnnl::convolution_backward_weights(how),
              how.scratchpad_desc(),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw}});
  return program.finish();
}

template <Build build>
void add_rows(std::vector<Kernel>& rows, std::string_view op) {
  rows.push_back(row<build, Arithmetic::native>(op, "onednn/conv"));
  rows.push_back(row<build, Arithmetic::by_float32>(op, "onednn/conv by float32"));
}

}  // namespace

std::vector<Kernel> conv_kernels() {
  std::vector<Kernel> rows;
  add_rows<build_forward>(rows, "Conv2D");
  add_rows<build_backward_data>(rows, "Conv2DBackpropInput");
  add_rows<build_backward_weights>(rows, "Conv2DBackpropFilter");
  add_rows<build_forward>(rows, "DepthwiseConv2dNative");
  add_rows<build_backward_data>(rows, "DepthwiseConv2dNativeBackpropInput");
  add_rows<build_backward_weights>(rows, "DepthwiseConv2dNativeBackpropFilter");
  return rows;
}

}  // namespace halfstep::backend::cpu::onednn
