// Attention of heads.

#include "backend/cuda/kernels/attention.h"

#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// `query`: the number of that input.
kernels::AttentionInputs inputs_of(const NodeView& node, std::size_t query) {
  return {.dtype = node.input(query).dtype,
          .geometry = graph::ops::attention_geometry(node.attrs(),
                                                     node.input(query).shape,
                                                     node.input(query + 1).shape,
                                                     node.input(query + 2).shape),
          .dropout = graph::ops::AttentionDropout(node.attrs())};
}

/// `ordinal`: the number of that input, where there is one; the mask is the next one.
void point(kernels::AttentionInputs& inputs,
           const Args& a,
           std::size_t query,
           std::size_t ordinal,
           std::size_t count) {
  inputs.query = a.in[query].data;
  inputs.key = a.in[query + 1].data;
  inputs.value = a.in[query + 2].data;
  inputs.ordinal = ordinal < count ? a.in[ordinal].as<std::int64_t>() : nullptr;
  inputs.taken = ordinal + 1 < count ? a.in[ordinal + 1].as<bool>() : nullptr;
}

PreparedKernel prepare_attention(const NodeView& node, const DeviceContext& context) {
  kernels::AttentionParams params{.inputs = inputs_of(node, 0)};
  return {[=, count = node.inputs(), stream = context.stream()](const Args& a) mutable {
    point(params.inputs, a, 0, 3, count);
    params.result = a.out[0].data;
    params.log_sum_exp = a.out[1].as<float>();
    kernels::attention(stream, params);
  }};
}

PreparedKernel prepare_attention_grad(const NodeView& node, const DeviceContext& context) {
  kernels::AttentionGradParams params{.inputs = inputs_of(node, 1)};
  return {[=, count = node.inputs(), stream = context.stream()](const Args& a) mutable {
    point(params.inputs, a, 1, 6, count);
    params.dy = a.in[0].data;
    params.result = a.in[4].data;
    params.log_sum_exp = a.in[5].as<float>();
    params.dquery = a.out[0].data;
    params.dkey = a.out[1].data;
    params.dvalue = a.out[2].data;
    kernels::attention_grad(stream, params);
  }};
}

}  // namespace

std::vector<Implementation> attention_kernels() {
  return {
      {"cuda/attention", prepare_attention},
      {"cuda/attention_grad", prepare_attention_grad},
  };
}

}  // namespace halfstep::backend::cuda::plugin
