// Reductions, ArgMax, InTopK and L2Loss.

#include "backend/cuda/kernels/reduce.h"

#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

PreparedKernel prepare_reduce(const NodeView& node, const DeviceContext& context) {
  const auto reduction = kernels::reduction_of(node.node.op);
  require(reduction.has_value(), "{} is no reduction", node.node.op);
  kernels::ReduceParams params{.reduction = *reduction,
                               .dtype = node.input(0).dtype,
                               .index = node.output().dtype,
                               .shape = node.input(0).shape,
                               .tickets = context.tickets};
  for (const std::int64_t axis : constant_input(node, 1)) {
    params.axes |= 1U << axis_of(axis, params.shape.rank());
  }
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.y = a.out[0].data;
            params.workspace = a.workspace;
            kernels::reduce(stream, params);
          },
          kernels::reduce_workspace(params)};
}

PreparedKernel prepare_l2_loss(const NodeView& node, const DeviceContext& context) {
  kernels::L2LossParams params{.dtype = node.input(0).dtype,
                               .elements = node.input(0).shape.elements(),
                               .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.y = a.out[0].data;
            params.workspace = a.workspace;
            kernels::l2_loss(stream, params);
          },
          kernels::l2_loss_workspace(params)};
}

PreparedKernel prepare_in_top_k(const NodeView& node, const DeviceContext& context) {
  const Shape& scores = node.input(0).shape;
  kernels::InTopKParams params{
      .index = node.input(1).dtype, .rows = scores[0], .classes = scores[1]};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.scores = a.in[0].as<float>();
    params.targets = a.in[1].data;
    params.k = a.in[2].data;
    params.y = a.out[0].as<bool>();
    kernels::in_top_k(stream, params);
  }};
}

}  // namespace

std::vector<Implementation> reduce_kernels() {
  return {
      {"cuda/in_top_k", prepare_in_top_k},
      {"cuda/l2_loss", prepare_l2_loss},
      {"cuda/reduce", prepare_reduce},
  };
}

}  // namespace halfstep::backend::cuda::plugin
