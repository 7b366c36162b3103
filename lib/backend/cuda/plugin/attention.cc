// Attention of heads.

#include "backend/cuda/kernels/attention.h"

#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// `query`: the number of that input.
kernels::AttentionInputs inputs_of(const Facts& node, std::size_t query) {
  return {.dtype = node.input(query).dtype,
          .geometry = graph::ops::attention_geometry(node.attrs,
                                                     node.input(query).shape,
                                                     node.input(query + 1).shape,
                                                     node.input(query + 2).shape),
          .dropout = graph::ops::AttentionDropout(node.attrs)};
}

/// `ordinal`: the number of that input, where there is one; the mask is the next one.
void point(kernels::AttentionInputs& inputs,
           const Addresses& a,
           std::size_t query,
           std::size_t ordinal,
           std::size_t count) {
  inputs.query = a.in[query];
  inputs.key = a.in[query + 1];
  inputs.value = a.in[query + 2];
  inputs.ordinal = ordinal < count ? a.input<std::int64_t>(ordinal) : nullptr;
  inputs.taken = ordinal + 1 < count ? a.input<bool>(ordinal + 1) : nullptr;
}

Work prepare_attention(const Facts& node, const Machine& machine) {
  kernels::AttentionParams params{.inputs = inputs_of(node, 0)};
  return {[=, count = node.inputs.size(), stream = machine.stream()](const Addresses& a) mutable {
    point(params.inputs, a, 0, 3, count);
    params.result = a.out[0];
    params.log_sum_exp = a.output<float>(1);
    kernels::attention(stream, params);
  }};
}

Work prepare_attention_grad(const Facts& node, const Machine& machine) {
  kernels::AttentionGradParams params{.inputs = inputs_of(node, 1)};
  return {[=, count = node.inputs.size(), stream = machine.stream()](const Addresses& a) mutable {
    point(params.inputs, a, 1, 6, count);
    params.dy = a.in[0];
    params.result = a.in[4];
    params.log_sum_exp = a.input<float>(5);
    params.dquery = a.out[0];
    params.dkey = a.out[1];
    params.dvalue = a.out[2];
    kernels::attention_grad(stream, params);
  }};
}

}  // namespace

std::vector<Row> attention_rows() {
  return {
      {"cuda/attention", prepare_attention},
      {"cuda/attention_grad", prepare_attention_grad},
  };
}

}  // namespace halfstep::backend::cuda::plugin
