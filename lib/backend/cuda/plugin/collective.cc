// Sums over the ranks of a run and their halves (graph/ops/collective.cc), by NCCL beside the
// backward pass. Tensors are packed and unpacked by one launch for those of one dtype.

#include <algorithm>

#include "backend/cuda/kernels/slices.h"
#include "backend/cuda/plugin/prepare.h"
#include "comm/communicator.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cuda::plugin {
namespace {

using kernels::SlicesParams;

/// The tensors of a node, in the slices of `ranks` ranks, and the launches that pack them.
class Slices {
 public:
  Slices(DType packed_as, std::int64_t ranks) : packed_as_(packed_as), ranks_(ranks) {}

  void add(DType dtype, std::int64_t elements) {
    auto launch = std::find_if(launches_.begin(), launches_.end(), [&](const SlicesParams& p) {
      return p.whole == dtype && p.count < SlicesParams::k_max_tensors;
    });
    if (launch == launches_.end()) {
      launches_.push_back({.whole = dtype, .packed_as = packed_as_, .ranks = ranks_});
      launch = launches_.end() - 1;
    }
    const std::int64_t slice = graph::ops::slice_elements(elements, ranks_);
    places_.emplace_back(launch - launches_.begin(), launch->count);
    launch->tensors[launch->count++] = {nullptr, elements, slice, stride_};
    stride_ += slice;
    for (SlicesParams& each : launches_) each.stride = stride_;
  }

  /// Elements of the slices of a rank.
  std::int64_t stride() const { return stride_; }

  /// Packs or unpacks the tensors at these addresses, in the order in which they were added.
  using Move = void (*)(Stream, const SlicesParams&);
  void run(Move move, Stream stream, std::span<const TensorView> tensors, void* packed) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto& [launch, at] = places_[i];
      launches_[static_cast<std::size_t>(launch)].tensors[at].whole = tensors[i].data;
    }
    for (SlicesParams& each : launches_) {
      each.packed = packed;
      move(stream, each);
    }
  }

 private:
  DType packed_as_;
  std::int64_t ranks_;
  std::int64_t stride_ = 0;
  std::vector<SlicesParams> launches_;
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> places_;  ///< of each tensor
};

Slices slices_of(const std::vector<graph::TensorType>& types, DType packed_as, std::int64_t ranks) {
  Slices slices(packed_as, ranks);
  for (const graph::TensorType& type : types) slices.add(type.dtype, type.shape.elements());
  return slices;
}

std::size_t bytes_of(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * size_bytes(dtype);
}

/// The first byte of this rank's part of a packed tensor.
std::size_t own_part(const NodeView& node, std::int64_t stride, DType dtype) {
  return bytes_of(node.attrs().get<std::int64_t>("rank") * stride, dtype);
}

PreparedKernel prepare_all_reduce_start(const NodeView& node, const DeviceContext& context) {
  const DType dtype = node.output().dtype;
  const std::int64_t count = node.output().shape.elements();
  Slices whole = slices_of(input_types(node), dtype, 1);
  const std::size_t filled = bytes_of(whole.stride(), dtype);
  const std::size_t padding = bytes_of(count, dtype) - filled;
  return {[=, vendor = &context.vendor](const Args& a) mutable {
    whole.run(kernels::pack_slices, vendor->stream(), a.in, a.out[0].data);
    if (padding > 0) vendor->fill(a.out[0].as<std::byte>() + filled, 0, padding);
    vendor->start_sum(a.out[0].data, count, dtype, comm::CollectiveKind::all_reduce);
  }};
}

PreparedKernel prepare_all_reduce_wait(const NodeView& node, const DeviceContext& context) {
  Slices whole = slices_of(node.node.outputs, node.input(0).dtype, 1);
  return {[=, vendor = &context.vendor](const Args& a) mutable {
    vendor->wait_for_sum(a.in[0].data);
    whole.run(kernels::unpack_slices, vendor->stream(), a.out, a.in[0].data);
  }};
}

PreparedKernel prepare_reduce_scatter_start(const NodeView& node, const DeviceContext& context) {
  const DType dtype = node.output().dtype;
  const std::int64_t count = node.output().shape.elements();
  Slices slices = slices_of(input_types(node), dtype, node.attrs().get<std::int64_t>("ranks"));
  return {[=, vendor = &context.vendor](const Args& a) mutable {
    slices.run(kernels::pack_slices, vendor->stream(), a.in, a.out[0].data);
    vendor->start_sum(a.out[0].data, count, dtype, comm::CollectiveKind::reduce_scatter);
  }};
}

PreparedKernel prepare_reduce_scatter_wait(const NodeView& node, const DeviceContext& context) {
  const DType dtype = node.input(0).dtype;
  Slices own = slices_of(node.node.outputs, dtype, 1);
  const std::size_t begin = own_part(node, own.stride(), dtype);
  return {[=, vendor = &context.vendor](const Args& a) mutable {
    vendor->wait_for_sum(a.in[0].data);
    own.run(kernels::unpack_slices, vendor->stream(), a.out, a.in[0].as<std::byte>() + begin);
  }};
}

PreparedKernel prepare_all_gather_start(const NodeView& node, const DeviceContext& context) {
  const DType dtype = node.output().dtype;
  const std::int64_t count = node.output().shape.elements();
  Slices own = slices_of(input_types(node), dtype, 1);
  const std::size_t begin = own_part(node, own.stride(), dtype);
  return {[=, vendor = &context.vendor](const Args& a) mutable {
    own.run(kernels::pack_slices, vendor->stream(), a.in, a.out[0].as<std::byte>() + begin);
    vendor->start_sum(a.out[0].data, count, dtype, comm::CollectiveKind::all_gather);
  }};
}

PreparedKernel prepare_all_gather_wait(const NodeView& node, const DeviceContext& context) {
  const DType dtype = node.input(0).dtype;
  Slices slices(dtype, node.attrs().get<std::int64_t>("ranks"));
  for (const std::int64_t count : node.attrs().get<std::vector<std::int64_t>>("counts")) {
    slices.add(dtype, count);
  }
  return {[=, vendor = &context.vendor](const Args& a) mutable {
    vendor->wait_for_sum(a.in[0].data);
    slices.run(kernels::unpack_slices, vendor->stream(), a.in.subspan(1), a.in[0].data);
  }};
}

}  // namespace

std::vector<Implementation> collective_kernels() {
  return {{"cuda/all_reduce_start", prepare_all_reduce_start},
          {"cuda/all_reduce_wait", prepare_all_reduce_wait},
          {"cuda/reduce_scatter_start", prepare_reduce_scatter_start},
          {"cuda/reduce_scatter_wait", prepare_reduce_scatter_wait},
          {"cuda/all_gather_start", prepare_all_gather_start},
          {"cuda/all_gather_wait", prepare_all_gather_wait}};
}

}  // namespace halfstep::backend::cuda::plugin
