// Convolutions of x [N,H,W,C] with filters [h,w,C/groups,O], and their gradients. Depthwise filters
// [h,w,C,M] have the memory layout of grouped ones. Activations keep their layout unless oneDNN has
// a faster implementation for another; weights are reordered to the layout of its choice. A bias is
// added to the float32 accumulators before they are rounded. Stored dtypes: float32, bfloat16,
// float16; accumulated in float32, rounded once.
//
// A float16 value is the sum of a high and a low bfloat16 part, and multiplying two of them is the
// sum of four partial products, of which the variant with three omits low by low. With split
// arithmetic a float16 convolution is therefore a bfloat16 convolution with three or four times the
// terms: channels of x and filter forward, of dy and filter for the input gradient, images for the
// filter gradient.

#include <algorithm>
#include <optional>
#include <string>

#include "backend/cpu/onednn/api.h"
#include "backend/cpu/onednn/by_images.h"
#include "backend/cpu/onednn/onednn.h"
#include "backend/cpu/onednn/program.h"
#include "graph/op_handles.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::onednn {
namespace {

using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;

/// A convolution in oneDNN's convention.
struct Conv {
  dnnl::memory::dims x, w, y;  ///< [N,C,H,W], [G,O/G,C/G,h,w] or [O,C,h,w], [N,O,H,W]
  ConvWindow window;
  bool grouped = false;
  bool biased = false;
  std::int64_t batch = 1, images = 1;  ///< of the node, and of x and y
  /// Partial products per multiplication of values.
  std::int64_t products = 1;
};

/// The tensor that a convolution or a gradient computes.
enum class Result { y, x, w };

bool is_depthwise(const NodeView& node) { return node.node.op.starts_with("Depthwise"); }

ConvGeometry geometry(const NodeView& node, Result result) {
  const Shape& x = result == Result::x ? node.output().shape : node.input(0).shape;
  const Shape& filter = result == Result::w ? node.output().shape : node.input(1).shape;
  return is_depthwise(node) ? graph::ops::depthwise_geometry(node.attrs(), x, filter)
                            : graph::ops::conv_geometry(node.attrs(), x, filter);
}

/// Over `images` images of the node's batch.
Conv conv(const NodeView& node, Result result, Arithmetic arithmetic, std::int64_t images) {
  const ConvGeometry g = geometry(node, result);
  const WindowAxis& h = g.window.height;
  const WindowAxis& w = g.window.width;
  Conv c;
  c.grouped = g.groups > 1;
  c.biased = node.node.is(graph::ops::k_conv2d_bias);
  c.batch = g.batch;
  c.images = images;
  c.x = {images, g.inputs, h.input, w.input};
  c.y = {images, g.outputs, h.output, w.output};
  c.w = {g.group_outputs, g.group_inputs, h.size, w.size};
  if (c.grouped) c.w.insert(c.w.begin(), g.groups);
  c.window = {.strides = {h.stride, w.stride},
              .dilations = {h.dilation - 1, w.dilation - 1},
              .before = {h.pad_before, w.pad_before},
              .after = {h.pad_after, w.pad_after}};
  if (arithmetic == Arithmetic::split) {
    c.products = node.attrs().get<std::int64_t>("float16_products");
    // The reduction axes: input channels, output channels, images.
    for (auto* extent : {result == Result::y ? &c.x[1] : &c.y[result == Result::x ? 1 : 0],
                         result == Result::w ? &c.x[0] : &c.w[result == Result::x ? 0 : 1]}) {
      *extent *= c.products;
    }
  }
  return c;
}

/// The tensors whose layout the primitive may choose.
enum class Freedom { weights, all };

/// The tensor that is accumulated, or none if all are operands.
using Summed = std::optional<Result>;

/// Filter gradients are sums of chunks.
constexpr Role role(Result tensor, Summed summed) {
  if (tensor != summed) return Role::operand;
  return tensor == Result::w ? Role::sum : Role::result;
}

/// 16 channels in NHWC are also one block of nChw16c, and a single channel has the same memory
/// order in every layout. oneDNN's blocked implementation is faster for such tensors, and no
/// reorder is needed. Not with AMX, which that implementation does not use: bfloat16 NHWC is faster
/// there, unless x has one channel.
bool reads_as_blocks(const Program& program, const Conv& c, Result result) {
  if (program.takes_bfloat16() && c.x[1] == 16 && effective_isa() >= Isa::amx) return false;
  return !c.grouped && c.y[1] == 16 && (c.x[1] == 16 || (c.x[1] == 1 && result == Result::y));
}

/// The memory descriptors of the tensors as stored.
ConvDescs stored_descs(const Program& program, const Conv& c, Result result, Summed summed) {
  const Role w = role(Result::w, summed);
  ConvDescs d{
      program.dense(c.x, {0, 2, 3, 1}, role(Result::x, summed)),
      c.grouped ? program.dense(c.w, {3, 4, 2, 0, 1}, w) : program.dense(c.w, {2, 3, 1, 0}, w),
      program.dense(c.y, {0, 2, 3, 1}, role(Result::y, summed))};
  if (reads_as_blocks(program, c, result)) {
    using tag = dnnl::memory::format_tag;
    const tag x = c.x[1] == 1 ? tag::nchw : tag::nChw16c;
    d.x = program.tagged(c.x, x, role(Result::x, summed));
    d.y = program.tagged(c.y, tag::nChw16c, role(Result::y, summed));
  }
  // Of the result's dtype: the bias is added to the accumulators and needs no splitting.
  if (c.biased) d.bias = program.dense({c.y[1]}, {0}, Role::result);
  return d;
}

ConvDescs stored_descs(const Program& program, const Conv& c, Result result) {
  return stored_descs(program, c, result, result);
}

ConvDescs primitive_descs(
    const Program& program, const Conv& c, Result result, Freedom freedom, Summed summed) {
  ConvDescs d = stored_descs(program, c, result, summed);
  d.w = program.any(c.w, role(Result::w, summed));
  if (freedom == Freedom::all) {
    d.x = program.any(c.x, role(Result::x, summed));
    d.y = program.any(c.y, role(Result::y, summed));
  }
  return d;
}

/// Operand `port`, of which `with_images` says whether it has images, reduced over the axis before
/// the last `inner` elements. Left and right parts with the same index are multiplied: (high,
/// high), (high, low), (low, high), and as the fourth (low, low).
enum class Factor { left, right };
Program::Memory operand(Program& program,
                        const NodeView& node,
                        std::size_t port,
                        bool with_images,
                        const dnnl::memory::desc& desc,
                        const Conv& c,
                        std::int64_t inner,
                        Factor factor) {
  if (c.products == 1) return program.input(port, desc);
  using vector::SplitPart;
  const std::int64_t elements = node.input(port).shape.elements();
  Split split{.outer = (with_images ? elements / c.batch * c.images : elements) / inner,
              .inner = inner,
              .parts = {SplitPart::high}};
  if (factor == Factor::left) {
    split.parts.insert(split.parts.end(), {SplitPart::high, SplitPart::low, SplitPart::low});
  } else {
    split.parts.insert(split.parts.end(), {SplitPart::low, SplitPart::high, SplitPart::low});
  }
  split.parts.resize(static_cast<std::size_t>(c.products));
  return program.split_input(port, desc, std::move(split));
}

auto forward(const Program& program, const Conv& c, Freedom freedom) {
  return convolution_forward(primitive_descs(program, c, Result::y, freedom, Result::y), c.window);
}

/// The forward convolution descriptor that a backward descriptor needs, with all tensors as
/// operands.
auto hint(const Program& program, const Conv& c, Result result, Freedom freedom) {
  return convolution_forward(primitive_descs(program, c, result, freedom, std::nullopt), c.window);
}

auto backward_data(const Program& program, const Conv& c, Freedom freedom) {
  return convolution_backward_data(primitive_descs(program, c, Result::x, freedom, Result::x),
                                   c.window,
                                   hint(program, c, Result::x, freedom));
}

/// With strides, the gradient of 1 x 1 filters in oneDNN 2.6.3 copies the pixels that it reads to
/// its workspace, with AVX2 in vectors of 8 channels: if the number of channels is not a multiple
/// of 8, it writes past the workspace or into that of another thread. Its blocked layout pads
/// channels to 8.
bool copies_too_much(std::string_view implementation, const Conv& c) {
  const auto& strides = c.window.strides;
  return implementation == "jit_1x1:avx2" && std::ranges::max(strides) > 1 && c.x[1] % 8 != 0;
}

auto backward_weights(const Program& program, const Conv& c, Freedom freedom) {
  return convolution_backward_weights(primitive_descs(program, c, Result::w, freedom, Result::w),
                                      c.window,
                                      hint(program, c, Result::w, freedom));
}

/// Ranks an oneDNN implementation: 0 reference loops, 1 lowering to GEMM, 2 code generated for the
/// shape.
int rank(const std::string& implementation) {
  if (implementation.starts_with("ref")) return 0;
  return implementation.find("gemm:") != std::string::npos ? 1 : 2;
}

/// The primitive over activations as stored, unless one over layouts of oneDNN's choice has a
/// better rank.
template <class Make>
auto choose(const Program& program, const Conv& c, const Make& make) {
  auto plain = make(program, c, Freedom::weights);
  const int best = rank(plain.impl_info_str());
  if (best == 2) return plain;
  auto free = make(program, c, Freedom::all);
  return rank(free.impl_info_str()) > best ? free : plain;
}

using Sum = std::optional<std::size_t>;

Sum add_forward(Program& program, const NodeView& node, const Conv& c) {
  program.begin_shared();
  const ConvDescs user = stored_descs(program, c, Result::y);
  const auto how = choose(program, c, forward);
  const std::int64_t channels = node.input(0).shape[3];
  const auto right = operand(program, node, 1, false, user.w, c, channels * c.w[0], Factor::right);
  const auto w = program.in_layout(right, how.weights_desc());
  std::vector<std::pair<int, Program::Memory>> args{{DNNL_ARG_WEIGHTS, w}};
  if (c.biased) args.push_back({DNNL_ARG_BIAS, program.input(2, user.bias)});
  program.begin_chunk();
  const auto left = operand(program, node, 0, true, user.x, c, channels, Factor::left);
  args.push_back({DNNL_ARG_SRC, program.in_layout(left, how.src_desc())});
  args.push_back({DNNL_ARG_DST, program.for_layout(program.output(0, user.y), how.dst_desc())});
  program.run(dnnl::convolution_forward(how), how.scratchpad_desc(), args);
  return {};
}

Sum add_backward_data(Program& program, const NodeView& node, const Conv& c) {
  program.begin_shared();
  const ConvDescs user = stored_descs(program, c, Result::x);
  const auto how = choose(program, c, backward_data);
  const std::int64_t channels = node.input(2).shape[3];
  const auto right = operand(program, node, 1, false, user.w, c, channels, Factor::right);
  const auto w = program.in_layout(right, how.weights_desc());
  program.begin_chunk();
  const auto left = operand(program, node, 2, true, user.y, c, channels, Factor::left);
  const auto dy = program.in_layout(left, how.diff_dst_desc());
  const auto dx = program.for_layout(program.output(0, user.x), how.diff_src_desc());
  program.run(dnnl::convolution_backward_data(how),
              how.scratchpad_desc(),
              {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx}});
  return {};
}

/// The gradient of a chunk is float32.
Sum add_backward_weights(Program& program, const NodeView& node, const Conv& c) {
  const ConvDescs user = stored_descs(program, c, Result::w);
  auto how = choose(program, c, backward_weights);
  if (copies_too_much(how.impl_info_str(), c)) how = backward_weights(program, c, Freedom::all);
  const std::int64_t x_row = node.input(0).shape.elements() / c.batch * c.images;
  const std::int64_t y_row = node.input(2).shape.elements() / c.batch * c.images;
  const auto left = operand(program, node, 0, true, user.x, c, x_row, Factor::left);
  const auto right = operand(program, node, 2, true, user.y, c, y_row, Factor::right);
  const auto x = program.in_layout(left, how.src_desc());
  const auto dy = program.in_layout(right, how.diff_dst_desc());
  const auto [result, offset] = program.result(user.w);
  const auto dw = program.for_layout(result, how.diff_weights_desc());
  program.run(dnnl::convolution_backward_weights(how),
              how.scratchpad_desc(),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw}});
  return offset;
}

template <Result result>
Prepared build(const NodeView& node, const Capabilities& capabilities, Arithmetic arithmetic) {
  const ConvGeometry g = geometry(node, result);
  const auto add = [&](Program& program, std::int64_t images) {
    const Conv c = conv(node, result, arithmetic, images);
    if constexpr (result == Result::y) return add_forward(program, node, c);
    if constexpr (result == Result::x) return add_backward_data(program, node, c);
    if constexpr (result == Result::w) return add_backward_weights(program, node, c);
  };
  using Ports = std::vector<std::size_t>;
  const ImageOp op{
      .inputs = result == Result::y   ? Ports{0}
                : result == Result::x ? Ports{2}
                                      : Ports{0, 2},
      .add = add,
      .sums = result == Result::w,
      .batch = g.batch,
      .flops = 2.0 * static_cast<double>(g.y_shape().elements()) *
               static_cast<double>(g.group_inputs * g.window.height.size * g.window.width.size)};
  return prepare_by_images(node, capabilities, arithmetic, op);
}

/// oneDNN 2.6.3's bfloat16 AMX code gives wrong sums, or writes out of bounds, for about 1 % of
/// small random shapes: windows smaller than their stride or entirely in the padding, channels that
/// are not a multiple of 16, filter gradients over images one pixel wide.
Accepts is_safe_on_amx(const ConvGeometry& g) {
  constexpr std::int64_t k_channels = 16;
  if (g.group_inputs % k_channels != 0 || g.group_outputs % k_channels != 0) {
    return Accepts::no("oneDNN's code for amx fails with channels that are no multiple of 16");
  }
  for (const WindowAxis& axis : {g.window.height, g.window.width}) {
    if (axis.input == 1 || axis.size < axis.stride ||
        std::max(axis.pad_before, axis.pad_after) >= axis.extent()) {
      return Accepts::no("oneDNN's code for amx fails with such windows");
    }
  }
  return Accepts::yes();
}

/// Whether a tap of the window reads only padding, at every position.
bool has_unused_tap(const WindowAxis& axis) {
  for (std::int64_t tap = 0; tap < axis.size; ++tap) {
    bool used = false;
    for (std::int64_t o = 0; o < axis.output; ++o) used = used || axis.inside(axis.cell(o, tap));
    if (!used) return true;
  }
  return false;
}

template <Result result, Arithmetic arithmetic>
Accepts accepts_conv(const NodeView& node, const Capabilities& capabilities) {
  const DType dtype = node.output().dtype;
  if (arithmetic == Arithmetic::split ? dtype == DType::float16 : dtype == DType::bfloat16) {
    const ConvGeometry g = geometry(node, result);
    if (arithmetic == Arithmetic::split && g.groups > 1) return Accepts::no("groups");
    // One output per channel has a separate implementation, without AMX and pairs.
    const bool depthwise = is_depthwise(node) && g.groups > 1 && g.group_outputs == 1;
    // oneDNN pairs bfloat16 channels, and columns in filter gradients of one channel: the last of
    // an odd number with its neighbour in memory, times zero: NaN where that one is not finite.
    const std::int64_t summed = result == Result::y   ? g.group_inputs
                                : result == Result::x ? g.group_outputs
                                : g.group_inputs == 1 ? g.window.width.output
                                                      : 2;
    if (!depthwise && summed % 2 != 0) return Accepts::no("an odd number of values to sum over");
    if (effective_isa() >= Isa::amx && !depthwise) {
      if (Accepts safe = is_safe_on_amx(g); !safe) return safe;
    }
    // oneDNN 2.6 and 3.2 do not write the bfloat16 gradient of such a tap, which is zero. They
    // write that of float32.
    if (result == Result::w &&
        (has_unused_tap(g.window.height) || has_unused_tap(g.window.width))) {
      return Accepts::no("a tap of the window reads padding alone");
    }
  }
  return accepts(node, capabilities, arithmetic, build<result>);
}

template <Result result>
void add_kernels(std::vector<Kernel>& kernels, std::string_view op) {
  if (!op.starts_with("Depthwise")) {
    kernels.push_back(kernel<build<result>, Arithmetic::split>(op, "onednn/conv by halves"));
    kernels.back().accepts = accepts_conv<result, Arithmetic::split>;
  }
  kernels.push_back(kernel<build<result>, Arithmetic::native>(op, "onednn/conv"));
  kernels.back().accepts = accepts_conv<result, Arithmetic::native>;
  kernels.push_back(kernel<build<result>, Arithmetic::by_float32>(op, "onednn/conv by float32"));
}

}  // namespace

std::vector<Kernel> conv_kernels() {
  std::vector<Kernel> kernels;
  add_kernels<Result::y>(kernels, "Conv2D");
  add_kernels<Result::y>(kernels, "Conv2DBias");
  add_kernels<Result::x>(kernels, "Conv2DBackpropInput");
  add_kernels<Result::w>(kernels, "Conv2DBackpropFilter");
  add_kernels<Result::y>(kernels, "DepthwiseConv2dNative");
  add_kernels<Result::x>(kernels, "DepthwiseConv2dNativeBackpropInput");
  add_kernels<Result::w>(kernels, "DepthwiseConv2dNativeBackpropFilter");
  return kernels;
}

}  // namespace halfstep::backend::cpu::onednn
