// Ops that move elements.

#include "backend/cuda/kernels/array.h"

#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// One copy from input `i` to output 0.
Work copy_of(const Facts& node,
             const Machine& machine,
             const kernels::CopyMap& map,
             std::size_t i = 0) {
  kernels::CopyParams params{.element_bytes = size_bytes(node.output().dtype), .map = map};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[i];
    params.y = a.out[0];
    kernels::copy(stream, params);
  }};
}

Work prepare_broadcast(const Facts& node, const Machine& machine) {
  return copy_of(
      node, machine, kernels::map_of_broadcast(node.input(0).shape, node.output().shape));
}

Work prepare_transpose(const Facts& node, const Machine& machine) {
  return copy_of(node, machine, kernels::map_of_transpose(node.input(0).shape, node.constant(1)));
}

Work prepare_reverse(const Facts& node, const Machine& machine) {
  return copy_of(node, machine, kernels::map_of_reverse(node.input(0).shape, node.constant(1)));
}

Work prepare_slice(const Facts& node, const Machine& machine) {
  return copy_of(node,
                 machine,
                 kernels::map_of_slice(node.input(0).shape, node.constant(1), node.output().shape));
}

/// Pad with zeros, PadV2 with its third input.
Work prepare_pad(const Facts& node, const Machine& machine) {
  const std::size_t bytes = size_bytes(node.output().dtype);
  const Shape& y = node.output().shape;
  kernels::FillParams fill{.element_bytes = bytes, .elements = y.elements()};
  kernels::CopyParams copy{.element_bytes = bytes,
                           .map = kernels::map_of_pad(node.input(0).shape, node.constant(1), y)};
  return {
      [=, valued = node.inputs.size() > 2, stream = machine.stream()](const Addresses& a) mutable {
        fill.value = valued ? a.in[2] : nullptr;
        fill.y = a.out[0];
        kernels::fill(stream, fill);
        copy.x = a.in[0];
        copy.y = a.out[0];
        kernels::copy(stream, copy);
      }};
}

Work prepare_tile(const Facts& node, const Machine& machine) {
  kernels::TileParams params{.element_bytes = size_bytes(node.output().dtype),
                             .x_shape = node.input(0).shape,
                             .y_shape = node.output().shape};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[0];
    params.y = a.out[0];
    kernels::tile(stream, params);
  }};
}

/// A copy from each part of `whole` along an axis to that part (Split), or back (ConcatV2).
Work copies_of_parts(const Machine& machine,
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
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      copies[i].x = joins ? a.in[i] : a.in[1];
      copies[i].y = joins ? a.out[0] : a.out[i];
      kernels::copy(stream, copies[i]);
    }
  }};
}

Work prepare_concat(const Facts& node, const Machine& machine) {
  const std::size_t count = node.inputs.size() - 1;
  const std::span<const graph::TensorType> parts(node.inputs.data(), count);
  return copies_of_parts(machine, node.output().shape, node.constant(count).at(0), parts, true);
}

Work prepare_split(const Facts& node, const Machine& machine) {
  return copies_of_parts(machine, node.input(1).shape, node.constant(0).at(0), node.outputs, false);
}

Work prepare_fill(const Facts& node, const Machine& machine) {
  kernels::FillParams params{.element_bytes = size_bytes(node.output().dtype),
                             .elements = node.output().shape.elements()};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.value = a.in[1];
    params.y = a.out[0];
    kernels::fill(stream, params);
  }};
}

Work prepare_shape(const Facts& node, const Machine& machine) {
  const Shape& shape = node.input(0).shape;
  kernels::WriteIntegersParams params{.dtype = node.output().dtype, .count = shape.rank()};
  std::copy(shape.begin(), shape.end(), params.values.begin());
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.y = a.out[0];
    kernels::write_integers(stream, params);
  }};
}

Work prepare_one_hot(const Facts& node, const Machine& machine) {
  const Shape& indices = node.input(0).shape;
  const std::size_t axis = axis_of(node.attrs.get<std::int64_t>("axis"), indices.rank() + 1);
  kernels::OneHotParams params{.index = node.input(0).dtype,
                               .element_bytes = size_bytes(node.output().dtype),
                               .outer = indices.elements(0, axis),
                               .depth = node.output().shape[axis],
                               .inner = indices.elements(axis, indices.rank())};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.indices = a.in[0];
    params.on = a.in[2];
    params.off = a.in[3];
    params.y = a.out[0];
    kernels::one_hot(stream, params);
  }};
}

Work prepare_gather(const Facts& node, const Machine& machine) {
  const Shape& x = node.input(0).shape;
  const std::size_t axis = axis_of(node.constant(2).at(0), x.rank());
  kernels::GatherParams params{.index = node.input(1).dtype,
                               .element_bytes = size_bytes(node.output().dtype),
                               .outer = x.elements(0, axis),
                               .extent = x[axis],
                               .count = node.input(1).shape.elements(),
                               .inner = x.elements(axis + 1, x.rank())};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[0];
    params.indices = a.in[1];
    params.y = a.out[0];
    kernels::gather(stream, params);
  }};
}

Work prepare_segment_sum(const Facts& node, const Machine& machine) {
  const Shape& y = node.output().shape;
  const std::int64_t inner = y.elements(1, y.rank());
  kernels::SegmentSumParams params{.dtype = node.output().dtype,
                                   .index = node.input(1).dtype,
                                   .rows = node.input(1).shape.elements(),
                                   .segments = y[0],
                                   .inner = inner};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
            params.x = a.in[0];
            params.ids = a.in[1];
            params.y = a.out[0];
            params.workspace = a.workspace;
            kernels::segment_sum(stream, params);
          },
          kernels::segment_sum_workspace(params)};
}

}  // namespace

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

std::vector<Row> array_rows() {
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
