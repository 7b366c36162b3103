// Elementwise ops.

#include "backend/cuda/kernels/elementwise.h"

#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/fused.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"
#include "graph/op_handles.h"
#include "graph/ops/elementwise.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The attribute of a function; 0 for ops without one.
double alpha(const Facts& node) { return node.attrs.get_or<double>("alpha", 0.0); }

Work prepare_unary(const Facts& node, const Machine& machine) {
  const kernels::Unary function = kernels::unary_of(node.op);
  require(function != nullptr, "{} is no function of one element", node.op);
  kernels::UnaryParams params{.dtype = node.input(0).dtype,
                              .elements = node.output().shape.elements(),
                              .alpha = alpha(node)};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[0];
    params.y = a.out[0];
    function(stream, params);
  }};
}

Work prepare_binary(const Facts& node, const Machine& machine) {
  const kernels::Binary function = kernels::binary_of(node.op);
  require(function != nullptr, "{} is no function of two elements", node.op);
  kernels::BinaryParams params{.dtype = node.input(0).dtype,
                               .a_shape = node.input(0).shape,
                               .b_shape = node.input(1).shape,
                               .shape = node.output().shape,
                               .alpha = alpha(node)};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.a = a.in[0];
    params.b = a.in[1];
    params.y = a.out[0];
    function(stream, params);
  }};
}

Work prepare_clip(const Facts& node, const Machine& machine) {
  kernels::ClipParams params{.dtype = node.output().dtype,
                             .x_shape = node.input(0).shape,
                             .low_shape = node.input(1).shape,
                             .high_shape = node.input(2).shape,
                             .shape = node.output().shape};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[0];
    params.low = a.in[1];
    params.high = a.in[2];
    params.y = a.out[0];
    kernels::clip(stream, params);
  }};
}

Work prepare_select(const Facts& node, const Machine& machine) {
  const Shape& condition = node.input(0).shape;
  kernels::SelectParams params{.element_bytes = size_bytes(node.output().dtype),
                               .condition_shape = condition,
                               .t_shape = node.input(1).shape,
                               .e_shape = node.input(2).shape,
                               .shape = node.output().shape,
                               .rows = node.op == graph::ops::k_select && condition.rank() == 1 &&
                                       node.output().shape.rank() > 1};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.condition = a.input<bool>(0);
    params.t = a.in[1];
    params.e = a.in[2];
    params.y = a.out[0];
    kernels::select(stream, params);
  }};
}

Work prepare_add_n(const Facts& node, const Machine& machine) {
  kernels::AddNParams params{
      .dtype = node.output().dtype, .inputs = {}, .elements = node.output().shape.elements()};
  return {[=, count = node.inputs.size(), stream = machine.stream()](const Addresses& a) mutable {
    params.inputs = {a.in, count};
    params.y = a.out[0];
    kernels::add_n(stream, params);
  }};
}

Work prepare_cast(const Facts& node, const Machine& machine) {
  kernels::CastParams params{.from = node.input(0).dtype,
                             .to = node.output().dtype,
                             .elements = node.output().shape.elements()};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.x = a.in[0];
    params.y = a.out[0];
    kernels::cast(stream, params);
  }};
}

Work prepare_fused_elementwise(const Facts& node, const Machine& machine) {
  using Params = kernels::FusedParams;
  const graph::ops::ElementwiseBody body =
      graph::ops::elementwise_body(node.attrs.get<std::string>("body"), node.inputs.size());
  require(node.inputs.size() <= Params::k_max_inputs && body.steps.size() <= Params::k_max_steps,
          "{} is too long",
          node.name);
  Params params{.shape = node.attrs.get<Shape>("shape"),
                .inputs = node.inputs.size(),
                .steps = body.steps.size(),
                .outputs = body.results.size()};
  for (std::size_t i = 0; i < params.inputs; ++i) {
    params.input[i] = {.dtype = node.input(i).dtype, .shape = node.input(i).shape};
  }
  for (std::size_t i = 0; i < params.steps; ++i) {
    const graph::ops::ElementwiseStep& from = body.steps[i];
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
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
            for (std::size_t i = 0; i < params.inputs; ++i) params.input[i].data = a.in[i];
            for (std::size_t i = 0; i < params.outputs; ++i) params.output[i].data = a.out[i];
            kernels::fused_elementwise(stream, params);
          },
          0,
          kernels::has_compiled_body(params) ? "compiled body" : "interpreted body"};
}

}  // namespace

std::vector<Row> elementwise_rows() {
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
