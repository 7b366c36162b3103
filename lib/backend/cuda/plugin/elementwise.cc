// Elementwise ops.

#include "backend/cuda/kernels/elementwise.h"

#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/fused.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"
#include "graph/elementwise_body.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The attribute of a function; 0 for ops without one.
double alpha(const NodeView& node) { return node.attrs().get_or<double>("alpha", 0.0); }

PreparedKernel prepare_unary(const NodeView& node, const DeviceContext& context) {
  const kernels::Unary function = kernels::unary_of(node.node.op);
  require(function != nullptr, "{} is no function of one element", node.node.op);
  kernels::UnaryParams params{.dtype = node.input(0).dtype,
                              .elements = node.output().shape.elements(),
                              .alpha = alpha(node)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.y = a.out[0].data;
    function(stream, params);
  }};
}

PreparedKernel prepare_binary(const NodeView& node, const DeviceContext& context) {
  const kernels::Binary function = kernels::binary_of(node.node.op);
  require(function != nullptr, "{} is no function of two elements", node.node.op);
  kernels::BinaryParams params{.dtype = node.input(0).dtype,
                               .a_shape = node.input(0).shape,
                               .b_shape = node.input(1).shape,
                               .shape = node.output().shape,
                               .alpha = alpha(node)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.a = a.in[0].data;
    params.b = a.in[1].data;
    params.y = a.out[0].data;
    function(stream, params);
  }};
}

PreparedKernel prepare_clip(const NodeView& node, const DeviceContext& context) {
  kernels::ClipParams params{.dtype = node.output().dtype,
                             .x_shape = node.input(0).shape,
                             .low_shape = node.input(1).shape,
                             .high_shape = node.input(2).shape,
                             .shape = node.output().shape};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.low = a.in[1].data;
    params.high = a.in[2].data;
    params.y = a.out[0].data;
    kernels::clip(stream, params);
  }};
}

PreparedKernel prepare_select(const NodeView& node, const DeviceContext& context) {
  const Shape& condition = node.input(0).shape;
  kernels::SelectParams params{.element_bytes = size_bytes(node.output().dtype),
                               .condition_shape = condition,
                               .t_shape = node.input(1).shape,
                               .e_shape = node.input(2).shape,
                               .shape = node.output().shape,
                               .rows = node.node.is(graph::ops::k_select) &&
                                       condition.rank() == 1 && node.output().shape.rank() > 1};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.condition = a.in[0].as<bool>();
    params.t = a.in[1].data;
    params.e = a.in[2].data;
    params.y = a.out[0].data;
    kernels::select(stream, params);
  }};
}

PreparedKernel prepare_add_n(const NodeView& node, const DeviceContext& context) {
  kernels::AddNParams params{
      .dtype = node.output().dtype, .inputs = {}, .elements = node.output().shape.elements()};
  return {[=, inputs = std::vector<const void*>(node.inputs()), stream = context.stream()](
              const Args& a) mutable {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = a.in[i].data;
    params.inputs = inputs;
    params.y = a.out[0].data;
    kernels::add_n(stream, params);
  }};
}

PreparedKernel prepare_cast(const NodeView& node, const DeviceContext& context) {
  kernels::CastParams params{.from = node.input(0).dtype,
                             .to = node.output().dtype,
                             .elements = node.output().shape.elements()};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.y = a.out[0].data;
    kernels::cast(stream, params);
  }};
}

PreparedKernel prepare_fused_elementwise(const NodeView& node, const DeviceContext& context) {
  using Params = kernels::FusedParams;
  const auto& body = node.attrs().get<graph::ElementwiseBody>("body");
  require(node.inputs() <= Params::k_max_inputs && body.steps.size() <= Params::k_max_steps,
          "{} is too long",
          node.node.name);
  Params params{.shape = node.attrs().get<Shape>("shape"),
                .inputs = node.inputs(),
                .steps = body.steps.size(),
                .outputs = body.results.size()};
  for (std::size_t i = 0; i < params.inputs; ++i) {
    params.input[i] = {.dtype = node.input(i).dtype, .shape = node.input(i).shape};
  }
  for (std::size_t i = 0; i < params.steps; ++i) {
    const graph::ElementwiseStep& from = body.steps[i];
    const auto function = kernels::fused_function(from.op);
    require(function.has_value(), "{} is no function of elements", from.op);
    kernels::FusedStep& to = params.step[i];
    to = {.function = *function,
          .dtype = from.dtype,
          .alpha = static_cast<float>(from.alpha),
          .seed = static_cast<std::uint64_t>(from.seed),
          .stream = static_cast<std::uint64_t>(from.stream)};
    for (std::size_t j = 0; j < from.operands.size(); ++j) {
      to.operands.at(j) = static_cast<std::uint8_t>(from.operands[j]);
    }
  }
  for (std::size_t i = 0; i < params.outputs; ++i) {
    params.output[i].step = static_cast<std::size_t>(body.results[i]);
  }
  return {[=, stream = context.stream()](const Args& a) mutable {
            for (std::size_t i = 0; i < params.inputs; ++i) params.input[i].data = a.in[i].data;
            for (std::size_t i = 0; i < params.outputs; ++i) params.output[i].data = a.out[i].data;
            kernels::fused_elementwise(stream, params);
          },
          0,
          kernels::has_compiled_body(params) ? "compiled body" : "interpreted body"};
}

}  // namespace

std::vector<Implementation> elementwise_kernels() {
  return {
      {"cuda/add_n", prepare_add_n},
      {"cuda/binary", prepare_binary},
      {"cuda/cast", prepare_cast},
      {"cuda/clip", prepare_clip},
      {"cuda/fused_elementwise", prepare_fused_elementwise},
      {"cuda/select", prepare_select},
      {"cuda/unary", prepare_unary},
  };
}

}  // namespace halfstep::backend::cuda::plugin
