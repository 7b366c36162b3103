#include <algorithm>

#include "backend/cuda/kernels/array.h"
#include "cuda_device/kernel_rows.h"

namespace halfstep::testing {
namespace {

namespace own = backend::cuda::kernels;
using backend::Args;
using backend::Capabilities;
using backend::Kernel;
using backend::NodeView;
using backend::Prepared;

using Integers = std::vector<std::int64_t>;

Prepared launch_copy(const NodeView& node, const own::CopyMap& map) {
  return launch_on_device([map, bytes = size_bytes(node.output().dtype)](const Args& a) {
    own::copy(device().stream(),
              {.element_bytes = bytes, .map = map, .x = a.in[0].data, .y = a.out[0].data});
  });
}

Prepared prepare_broadcast(const NodeView& node, const Capabilities&) {
  return launch_copy(node, own::map_of_broadcast(node.input(0).shape, node.output().shape));
}

Prepared prepare_transpose(const NodeView& node, const Capabilities&) {
  return launch_copy(node, own::map_of_transpose(node.input(0).shape, node.constant(1).value()));
}

Prepared prepare_reverse(const NodeView& node, const Capabilities&) {
  return launch_copy(node, own::map_of_reverse(node.input(0).shape, node.constant(1).value()));
}

Prepared prepare_slice(const NodeView& node, const Capabilities&) {
  return launch_copy(
      node, own::map_of_slice(node.input(0).shape, node.constant(1).value(), node.output().shape));
}

Prepared prepare_pad(const NodeView& node, const Capabilities&) {
  const own::CopyMap map =
      own::map_of_pad(node.input(0).shape, node.constant(1).value(), node.output().shape);
  return launch_on_device([map](const Args& a) {
    const std::size_t bytes = size_bytes(a.out[0].dtype);
    own::fill(device().stream(),
              {.element_bytes = bytes,
               .value = a.in.size() > 2 ? a.in[2].data : nullptr,
               .y = a.out[0].data,
               .elements = a.out[0].elements()});
    own::copy(device().stream(),
              {.element_bytes = bytes, .map = map, .x = a.in[0].data, .y = a.out[0].data});
  });
}

Prepared prepare_concat(const NodeView& node, const Capabilities&) {
  const std::size_t count = node.inputs() - 1;
  const std::int64_t axis = node.constant(count).value().at(0);
  const Shape& whole = node.output().shape;
  const std::size_t front =
      static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(whole.rank()) : axis);
  std::vector<own::CopyMap> maps;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    maps.push_back(own::map_of_concat(whole, axis, at, node.input(i).shape));
    at += node.input(i).shape[front];
  }
  return launch_on_device([maps](const Args& a) {
    for (std::size_t i = 0; i < maps.size(); ++i) {
      own::copy(device().stream(),
                {.element_bytes = size_bytes(a.out[0].dtype),
                 .map = maps[i],
                 .x = a.in[i].data,
                 .y = a.out[0].data});
    }
  });
}

Prepared prepare_split(const NodeView& node, const Capabilities&) {
  const std::int64_t axis = node.constant(0).value().at(0);
  const Shape& whole = node.input(1).shape;
  const std::size_t front =
      static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(whole.rank()) : axis);
  std::vector<own::CopyMap> maps;
  std::int64_t at = 0;
  for (const graph::TensorType& part : node.node.outputs) {
    maps.push_back(own::map_of_split(whole, axis, at, part.shape));
    at += part.shape[front];
  }
  return launch_on_device([maps](const Args& a) {
    for (std::size_t i = 0; i < maps.size(); ++i) {
      own::copy(device().stream(),
                {.element_bytes = size_bytes(a.out[i].dtype),
                 .map = maps[i],
                 .x = a.in[1].data,
                 .y = a.out[i].data});
    }
  });
}

Prepared prepare_fill(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::fill(device().stream(),
              {.element_bytes = size_bytes(a.out[0].dtype),
               .value = a.in[1].data,
               .y = a.out[0].data,
               .elements = a.out[0].elements()});
  });
}

Prepared prepare_tile(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::tile(device().stream(),
              {.element_bytes = size_bytes(a.out[0].dtype),
               .x = a.in[0].data,
               .y = a.out[0].data,
               .x_shape = a.in[0].shape,
               .y_shape = a.out[0].shape});
  });
}

Prepared prepare_shape(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    const Shape& shape = a.in[0].shape;
    own::WriteIntegersParams p{.dtype = a.out[0].dtype, .count = shape.rank(), .y = a.out[0].data};
    std::copy(shape.begin(), shape.end(), p.values.begin());
    own::write_integers(device().stream(), p);
  });
}

Prepared prepare_one_hot(const NodeView& node, const Capabilities&) {
  const Shape& y = node.output().shape;
  const auto rank = static_cast<std::int64_t>(y.rank());
  const std::int64_t named = node.attrs().get<std::int64_t>("axis");
  const auto axis = static_cast<std::size_t>(named < 0 ? named + rank : named);
  own::OneHotParams p{.index = node.input(0).dtype,
                      .element_bytes = size_bytes(node.output().dtype),
                      .outer = y.elements(0, axis),
                      .depth = y[axis],
                      .inner = y.elements(axis + 1, y.rank())};
  return launch_on_device([p](const Args& a) mutable {
    p.indices = a.in[0].data;
    p.on = a.in[2].data;
    p.off = a.in[3].data;
    p.y = a.out[0].data;
    own::one_hot(device().stream(), p);
  });
}

Prepared prepare_gather(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  const auto rank = static_cast<std::int64_t>(x.rank());
  const std::int64_t named = node.constant(2).value().at(0);
  const auto axis = static_cast<std::size_t>(named < 0 ? named + rank : named);
  own::GatherParams p{.index = node.input(1).dtype,
                      .element_bytes = size_bytes(node.output().dtype),
                      .outer = x.elements(0, axis),
                      .extent = x[axis],
                      .count = node.input(1).shape.elements(),
                      .inner = x.elements(axis + 1, x.rank())};
  return launch_on_device([p](const Args& a) mutable {
    p.x = a.in[0].data;
    p.indices = a.in[1].data;
    p.y = a.out[0].data;
    own::gather(device().stream(), p);
  });
}

Prepared prepare_segment_sum(const NodeView& node, const Capabilities&) {
  const Shape& y = node.output().shape;
  own::SegmentSumParams p{.dtype = node.output().dtype,
                          .index = node.input(1).dtype,
                          .rows = node.input(1).shape.elements(),
                          .segments = y[0],
                          .inner = y.elements(1, y.rank())};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.ids = a.in[1].data;
        p.y = a.out[0].data;
        p.workspace = a.workspace;
        own::segment_sum(device().stream(), p);
      },
      own::segment_sum_workspace(p));
}

}  // namespace

std::vector<Kernel> array_rows() {
  return {
      {"BroadcastTo", "cuda/broadcast", nullptr, prepare_broadcast},
      {"ConcatV2", "cuda/concat", nullptr, prepare_concat},
      {"Fill", "cuda/fill", nullptr, prepare_fill},
      {"GatherV2", "cuda/gather", nullptr, prepare_gather},
      {"OneHot", "cuda/one_hot", nullptr, prepare_one_hot},
      {"Pad", "cuda/pad", nullptr, prepare_pad},
      {"PadV2", "cuda/pad", nullptr, prepare_pad},
      {"ReverseV2", "cuda/reverse", nullptr, prepare_reverse},
      {"Shape", "cuda/shape", nullptr, prepare_shape},
      {"Slice", "cuda/slice", nullptr, prepare_slice},
      {"Split", "cuda/split", nullptr, prepare_split},
      {"Tile", "cuda/tile", nullptr, prepare_tile},
      {"Transpose", "cuda/transpose", nullptr, prepare_transpose},
      {"UnsortedSegmentSum", "cuda/segment_sum", nullptr, prepare_segment_sum},
  };
}

}  // namespace halfstep::testing
