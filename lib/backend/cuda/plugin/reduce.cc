// Reductions, ArgMax, InTopK and L2Loss.

#include "backend/cuda/kernels/reduce.h"

#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

Work prepare_reduce(const Facts& node, const Machine& machine) {
  const auto reduction = kernels::reduction_of(node.op);
  require(reduction.has_value(), "{} is no reduction", node.op);
  kernels::ReduceParams params{.reduction = *reduction,
                               .dtype = node.input(0).dtype,
                               .index = node.output().dtype,
                               .shape = node.input(0).shape,
                               .tickets = machine.tickets};
  for (const std::int64_t axis : node.constant(1)) {
    params.axes |= 1U << axis_of(axis, params.shape.rank());
  }
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
            params.x = a.in[0];
            params.y = a.out[0];
            params.workspace = a.workspace;
            kernels::reduce(stream, params);
          },
          kernels::reduce_workspace(params)};
}

Work prepare_l2_loss(const Facts& node, const Machine& machine) {
  kernels::L2LossParams params{.dtype = node.input(0).dtype,
                               .elements = node.input(0).shape.elements(),
                               .tickets = machine.tickets};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
            params.x = a.in[0];
            params.y = a.out[0];
            params.workspace = a.workspace;
            kernels::l2_loss(stream, params);
          },
          kernels::l2_loss_workspace(params)};
}

Work prepare_in_top_k(const Facts& node, const Machine& machine) {
  const Shape& scores = node.input(0).shape;
  kernels::InTopKParams params{
      .index = node.input(1).dtype, .rows = scores[0], .classes = scores[1]};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.scores = a.input<float>(0);
    params.targets = a.in[1];
    params.k = a.in[2];
    params.y = a.output<bool>();
    kernels::in_top_k(stream, params);
  }};
}

}  // namespace

std::vector<Row> reduce_rows() {
  return {
      {"cuda/in_top_k", prepare_in_top_k},
      {"cuda/l2_loss", prepare_l2_loss},
      {"cuda/reduce", prepare_reduce},
  };
}

}  // namespace halfstep::backend::cuda::plugin
