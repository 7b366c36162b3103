// Ops that move elements.

#include "backend/cuda/kernels/array.h"

#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// One copy from input `i` to output 0.
PreparedKernel copy_of(const NodeView& node,
                       const DeviceContext& context,
                       const kernels::CopyMap& map,
                       std::size_t i = 0) {
  kernels::CopyParams params{.element_bytes = size_bytes(node.output().dtype), .map = map};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[i].data;
    params.y = a.out[0].data;
    kernels::copy(stream, params);
  }};
}

PreparedKernel prepare_broadcast(const NodeView& node, const DeviceContext& context) {
  return copy_of(
      node, context, kernels::map_of_broadcast(node.input(0).shape, node.output().shape));
}

PreparedKernel prepare_transpose(const NodeView& node, const DeviceContext& context) {
  return copy_of(
      node, context, kernels::map_of_transpose(node.input(0).shape, constant_input(node, 1)));
}

PreparedKernel prepare_reverse(const NodeView& node, const DeviceContext& context) {
  return copy_of(
      node, context, kernels::map_of_reverse(node.input(0).shape, constant_input(node, 1)));
}

PreparedKernel prepare_slice(const NodeView& node, const DeviceContext& context) {
  return copy_of(
      node,
      context,
      kernels::map_of_slice(node.input(0).shape, constant_input(node, 1), node.output().shape));
}

/// Pad with zeros, PadV2 with its third input.
PreparedKernel prepare_pad(const NodeView& node, const DeviceContext& context) {
  const std::size_t bytes = size_bytes(node.output().dtype);
  const Shape& y = node.output().shape;
  kernels::FillParams fill{.element_bytes = bytes, .elements = y.elements()};
  kernels::CopyParams copy{
      .element_bytes = bytes,
      .map = kernels::map_of_pad(node.input(0).shape, constant_input(node, 1), y)};
  return {[=, valued = node.inputs() > 2, stream = context.stream()](const Args& a) mutable {
    fill.value = valued ? a.in[2].data : nullptr;
    fill.y = a.out[0].data;
    kernels::fill(stream, fill);
    copy.x = a.in[0].data;
    copy.y = a.out[0].data;
    kernels::copy(stream, copy);
  }};
}

PreparedKernel prepare_tile(const NodeView& node, const DeviceContext& context) {
  kernels::TileParams params{.element_bytes = size_bytes(node.output().dtype),
                             .x_shape = node.input(0).shape,
                             .y_shape = node.output().shape};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.y = a.out[0].data;
    kernels::tile(stream, params);
  }};
}

/// A copy from each part of `whole` along an axis to that part (Split), or back (ConcatV2).
PreparedKernel copies_of_parts(const DeviceContext& context,
                               const Shape& whole,
                               std::int64_t named_axis,
                               std::span<const graph::TensorType> parts,
                               bool joins) {
  const std::size_t axis = axis_of(named_axis, whole.rank());
  std::vector<kernels::CopyParams> copies;
  std::vector<std::int64_t> begin(whole.rank());
  for (const graph::TensorType& part : parts) {
    const kernels::CopyMap split = kernels::map_of_slice(whole, begin, part.shape);
    copies.push_back({.element_bytes = size_bytes(part.dtype),
                      .map = joins ? kernels::inverse_of(split) : split});
    begin[axis] += part.shape[axis];
  }
  return {[=, stream = context.stream()](const Args& a) mutable {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      copies[i].x = joins ? a.in[i].data : a.in[1].data;
      copies[i].y = joins ? a.out[0].data : a.out[i].data;
      kernels::copy(stream, copies[i]);
    }
  }};
}

PreparedKernel prepare_concat(const NodeView& node, const DeviceContext& context) {
  const std::size_t count = node.inputs() - 1;
  std::vector<graph::TensorType> parts = input_types(node);
  parts.pop_back();
  return copies_of_parts(
      context, node.output().shape, constant_input(node, count).at(0), parts, true);
}

PreparedKernel prepare_split(const NodeView& node, const DeviceContext& context) {
  return copies_of_parts(
      context, node.input(1).shape, constant_input(node, 0).at(0), node.node.outputs, false);
}

PreparedKernel prepare_fill(const NodeView& node, const DeviceContext& context) {
  kernels::FillParams params{.element_bytes = size_bytes(node.output().dtype),
                             .elements = node.output().shape.elements()};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.value = a.in[1].data;
    params.y = a.out[0].data;
    kernels::fill(stream, params);
  }};
}

PreparedKernel prepare_shape(const NodeView& node, const DeviceContext& context) {
  const Shape& shape = node.input(0).shape;
  kernels::WriteIntegersParams params{.dtype = node.output().dtype, .count = shape.rank()};
  std::copy(shape.begin(), shape.end(), params.values.begin());
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.y = a.out[0].data;
    kernels::write_integers(stream, params);
  }};
}

PreparedKernel prepare_one_hot(const NodeView& node, const DeviceContext& context) {
  const Shape& indices = node.input(0).shape;
  const std::size_t axis = axis_of(node.attrs().get<std::int64_t>("axis"), indices.rank() + 1);
  kernels::OneHotParams params{.index = node.input(0).dtype,
                               .element_bytes = size_bytes(node.output().dtype),
                               .outer = indices.elements(0, axis),
                               .depth = node.output().shape[axis],
                               .inner = indices.elements(axis, indices.rank())};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.indices = a.in[0].data;
    params.on = a.in[2].data;
    params.off = a.in[3].data;
    params.y = a.out[0].data;
    kernels::one_hot(stream, params);
  }};
}

PreparedKernel prepare_gather(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  const std::size_t axis = axis_of(constant_input(node, 2).at(0), x.rank());
  kernels::GatherParams params{.index = node.input(1).dtype,
                               .element_bytes = size_bytes(node.output().dtype),
                               .outer = x.elements(0, axis),
                               .extent = x[axis],
                               .count = node.input(1).shape.elements(),
                               .inner = x.elements(axis + 1, x.rank())};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.indices = a.in[1].data;
    params.y = a.out[0].data;
    kernels::gather(stream, params);
  }};
}

PreparedKernel prepare_segment_sum(const NodeView& node, const DeviceContext& context) {
  const Shape& y = node.output().shape;
  const std::int64_t inner = y.elements(1, y.rank());
  kernels::SegmentSumParams params{.dtype = node.output().dtype,
                                   .index = node.input(1).dtype,
                                   .rows = node.input(1).shape.elements(),
                                   .segments = y[0],
                                   .inner = inner};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.ids = a.in[1].data;
            params.y = a.out[0].data;
            params.workspace = a.workspace;
            kernels::segment_sum(stream, params);
          },
          kernels::segment_sum_workspace(params)};
}

}  // namespace

std::vector<Implementation> array_kernels() {
  return {
      {"cuda/broadcast", prepare_broadcast},
      {"cuda/concat", prepare_concat},
      {"cuda/fill", prepare_fill},
      {"cuda/gather", prepare_gather},
      {"cuda/one_hot", prepare_one_hot},
      {"cuda/pad", prepare_pad},
      {"cuda/reverse", prepare_reverse},
      {"cuda/segment_sum", prepare_segment_sum},
      {"cuda/shape", prepare_shape},
      {"cuda/slice", prepare_slice},
      {"cuda/split", prepare_split},
      {"cuda/tile", prepare_tile},
      {"cuda/transpose", prepare_transpose},
  };
}

}  // namespace halfstep::backend::cuda::plugin
