// Matmuls by cuBLASLt, convolutions by cuDNN.

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>

#include "backend/cuda/kernels/array.h"
#include "backend/cuda/kernels/bias.h"
#include "backend/cuda/plugin/library_matmul.h"
#include "core/error.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The extents before the last two.
Shape batch_of(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 2)); }

/// One operand of a batched matmul, broadcast to `batch`.
struct BatchOperand {
  /// `at`: the offset in the workspace for materializing the broadcast.
  BatchOperand(const graph::TensorType& type, const Shape& batch, std::size_t at) : offset(at) {
    const Shape batches = batch_of(type.shape);
    const std::int64_t size = type.shape[type.shape.rank() - 2] * type.shape.back();
    if (batches.elements() == 1) return;
    stride = size;
    if (batches.elements() == batch.elements()) return;
    std::vector<std::int64_t> whole(batch.begin(), batch.end());
    whole.insert(whole.end(), type.shape.end() - 2, type.shape.end());
    spread = kernels::CopyParams{.element_bytes = size_bytes(type.dtype),
                                 .map = kernels::map_of_broadcast(type.shape, Shape(whole))};
    workspace_bytes =
        aligned(static_cast<std::size_t>(batch.elements() * size) * size_bytes(type.dtype));
  }

  /// The address of the matrices, after materializing the broadcast if needed.
  const void* materialize(Stream stream, const void* from, std::byte* workspace) const {
    if (!spread) return from;
    kernels::CopyParams copy = *spread;
    copy.x = from;
    copy.y = workspace + offset;
    kernels::copy(stream, copy);
    return copy.y;
  }

  std::size_t offset;
  std::int64_t stride = 0;
  std::optional<kernels::CopyParams> spread;
  std::size_t workspace_bytes = 0;
};

/// The launch for a matmul without elements or terms, which the library does not accept; nothing
/// for others.
std::optional<PreparedKernel> without_matmul(const MatmulKey& key,
                                             const graph::TensorType& y,
                                             const DeviceContext& context) {
  if (y.shape.elements() > 0 && key.k > 0) return std::nullopt;
  const kernels::FillParams zero{.element_bytes = size_bytes(y.dtype),
                                 .elements = y.shape.elements()};
  return PreparedKernel{[=, stream = context.stream()](const Args& a) {
    kernels::FillParams params = zero;
    params.y = a.out[0].data;
    kernels::fill(stream, params);
  }};
}

/// The filter's shape in TensorFlow's layout, and in cuDNN's.
Shape stored_filter(const graph::ops::ConvGeometry& g) {
  return {g.window.height.size, g.window.width.size, g.group_inputs, g.outputs};
}
Shape library_filter(const graph::ops::ConvGeometry& g) {
  return {g.outputs, g.window.height.size, g.window.width.size, g.group_inputs};
}

PreparedKernel prepare_matmul(const NodeView& node, const DeviceContext& context) {
  const MatmulKey key = matmul_key(node.input(0),
                                   node.input(1),
                                   node.attrs().get<bool>("transpose_a"),
                                   node.attrs().get<bool>("transpose_b"),
                                   node.output(),
                                   context);
  if (const auto work = without_matmul(key, node.output(), context)) return *work;
  const auto matmul = LibraryMatmul::get(key, context);
  return {[matmul](const Args& a) {
            matmul->run({.a = a.in[0].data, .b = a.in[1].data, .c = a.out[0].data}, a.workspace);
          },
          matmul->workspace_bytes(),
          matmul->algorithm(),
          matmul->uses_tensor_cores()};
}

/// One library call; an operand whose matrices are not evenly spaced is materialized first, because
/// the library needs a constant stride and aligned matrices.
PreparedKernel prepare_batch_matmul(const NodeView& node, const DeviceContext& context) {
  const graph::TensorType &x = node.input(0), &y = node.input(1), &z = node.output();
  MatmulKey key = matmul_key(
      x, y, node.attrs().get<bool>("adj_x"), node.attrs().get<bool>("adj_y"), z, context);
  if (const auto work = without_matmul(key, z, context)) return *work;
  const Shape batch = batch_of(z.shape);
  const BatchOperand a(x, batch, 0), b(y, batch, a.workspace_bytes);
  key.batch = batch.elements();
  key.stride_a = a.stride;
  key.stride_b = b.stride;
  key.stride_c = key.m * key.n;
  const auto matmul = LibraryMatmul::get(key, context);
  const std::size_t copies = a.workspace_bytes + b.workspace_bytes;
  return {[=, stream = context.stream()](const Args& at) {
            matmul->run({.a = a.materialize(stream, at.in[0].data, at.workspace),
                         .b = b.materialize(stream, at.in[1].data, at.workspace),
                         .c = at.out[0].data},
                        at.workspace + copies);
          },
          copies + matmul->workspace_bytes(),
          matmul->algorithm(),
          matmul->uses_tensor_cores()};
}

/// Bias and ReLU of a convolution, and the launch that applies them.
std::string epilogue_text(const ConvKey& key, bool separate) {
  if (!key.bias) return "";
  return fmt::format(
      ", {} {}", key.relu ? "bias and ReLU" : "bias", separate ? "by an own kernel" : "fused");
}

/// The shape of an operand: that of input `i`, or, for the operand that a gradient computes, the
/// elements of this input.
Shape operand_shape(const NodeView& node, std::size_t i) {
  const auto sizes = node.constant(i);
  return sizes ? Shape(*sizes) : node.input(i).shape;
}

/// The workspace begins with the filter in the library's layout.
PreparedKernel prepare_convolution(const NodeView& node, const DeviceContext& context) {
  ConvKey key = conv_key(node.node.op,
                         node.attrs(),
                         operand_shape(node, 0),
                         operand_shape(node, 1),
                         node.output().dtype);
  key.float32 = context.float32;
  key.deterministic = context.deterministic;
  std::shared_ptr<Convolution> convolution = context.vendor.convolution(key);
  // Where the library has no engine for the bias, it is added to the rounded result.
  const bool adds_bias = convolution == nullptr && key.bias;
  if (adds_bias) {
    ConvKey plain = key;
    plain.bias = plain.relu = false;
    convolution = context.vendor.convolution(plain);
  }
  require(convolution != nullptr, "no library has {}", to_string(key));
  kernels::BiasAddParams bias{.dtype = key.dtype,
                              .outer = node.output().shape.elements() / key.geometry.outputs,
                              .channels = key.geometry.outputs,
                              .relu = key.relu};

  constexpr std::array<std::int64_t, 4> k_to_library{3, 0, 1, 2}, k_from_library{1, 2, 3, 0};
  const bool writes_filter = key.kind == ConvKind::filter_gradient;
  const Shape stored = stored_filter(key.geometry), wanted = library_filter(key.geometry);
  kernels::CopyParams order{.element_bytes = size_bytes(key.dtype),
                            .map = writes_filter ? kernels::map_of_transpose(wanted, k_from_library)
                                                 : kernels::map_of_transpose(stored, k_to_library)};
  const std::size_t filter_bytes =
      aligned(static_cast<std::size_t>(wanted.elements()) * order.element_bytes);
  return {[=, stream = context.stream()](const Args& a) mutable {
            if (!writes_filter) {
              order.x = a.in[1].data;
              order.y = a.workspace;
              kernels::copy(stream, order);
            }
            const bool writes_x = key.kind == ConvKind::input_gradient;
            const bool writes_y = key.kind == ConvKind::forward;
            convolution->run({.x = writes_x ? a.out[0].data : a.in[0].data,
                              .filter = a.workspace,
                              .y = writes_y ? a.out[0].data : a.in[2].data,
                              .bias = key.bias && !adds_bias ? a.in[2].data : nullptr},
                             a.workspace + filter_bytes);
            if (adds_bias) {
              bias.x = bias.y = a.out[0].data;
              bias.bias = a.in[2].data;
              kernels::bias_add(stream, bias);
            }
            if (writes_filter) {
              order.x = a.workspace;
              order.y = a.out[0].data;
              kernels::copy(stream, order);
            }
          },
          filter_bytes + convolution->workspace_bytes(),
          algorithm_text(convolution->description(), convolution->workspace_bytes()) +
              epilogue_text(key, adds_bias),
          convolution->uses_tensor_cores()};
}

}  // namespace

std::vector<Implementation> matmul_kernels() {
  return {
      {"cublaslt/matmul", prepare_matmul},
      {"cublaslt/batch_matmul", prepare_batch_matmul},
      {"cudnn/convolution", prepare_convolution},
  };
}

}  // namespace halfstep::backend::cuda::plugin
