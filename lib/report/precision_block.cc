#include "report/precision_block.h"

#include <algorithm>

#include "graph/op_handles.h"
#include "graph/ops/attention.h"
#include "graph/ops/ops.h"

namespace halfstep::report {
namespace {

using graph::Graph;
using graph::Node;

/// Multiply-adds of a matmul or convolution count twice; other ops are not counted.
double node_flops(const Graph& graph, const Node& node) {
  const auto elements = [&](std::size_t i) {
    return static_cast<double>(graph.type(node.inputs[i]).shape.elements());
  };
  const auto outputs =
      static_cast<double>(node.outputs.empty() ? 0 : node.outputs[0].shape.elements());
  if (node.is(graph::ops::k_matmul, graph::ops::k_fused_matmul)) {
    const Shape& a = graph.type(node.inputs[0]).shape;
    return 2 * outputs * static_cast<double>(node.attrs.get<bool>("transpose_a") ? a[0] : a[1]);
  }
  if (node.is(graph::ops::k_batch_matmul_v2)) {
    const Shape& x = graph.type(node.inputs[0]).shape;
    const std::size_t contracted = x.rank() - (node.attrs.get<bool>("adj_x") ? 2 : 1);
    return 2 * outputs * static_cast<double>(x[contracted]);
  }
  if (node.is(graph::ops::k_fused_attention, graph::ops::k_fused_attention_grad)) {
    // Those of the matmuls that it replaces: unseen scores count, and scores that the gradient
    // computes again do not.
    const bool to_result = node.is(graph::ops::k_fused_attention);
    const auto shape = [&](std::size_t i) -> const Shape& {
      return graph.type(node.inputs[to_result ? i : i + 1]).shape;
    };
    const graph::ops::AttentionGeometry g =
        graph::ops::attention_geometry(node.attrs, shape(0), shape(1), shape(2));
    return (to_result ? 2 : 4) * static_cast<double>(g.items() * g.queries * g.keys) *
           static_cast<double>(g.depth + g.value_depth);
  }
  if (node.is(graph::ops::k_rnn, graph::ops::k_rnn_grad)) {
    // The recurrent matmul of each sample and step, or its transpose.
    const Shape& rows = node.outputs[0].shape;
    return 2 * outputs / static_cast<double>(rows.back()) *
           elements(node.is(graph::ops::k_rnn) ? 1 : 2);
  }
  if (node.is(graph::ops::k_packed_matmul, graph::ops::k_packed_matmul_update)) {
    double product = 2;
    for (const char* extent : {"m", "n", "k"}) {
      product *= static_cast<double>(node.attrs.get<std::int64_t>(extent));
    }
    return product;
  }
  const bool forward = node.is(
      graph::ops::k_conv2d, graph::ops::k_conv2d_bias, graph::ops::k_depthwise_conv2d_native);
  const bool to_filter = node.is(graph::ops::k_conv2d_backprop_filter,
                                 graph::ops::k_depthwise_conv2d_native_backprop_filter);
  if (forward || to_filter ||
      node.is(graph::ops::k_conv2d_backprop_input,
              graph::ops::k_depthwise_conv2d_native_backprop_input)) {
    const Shape& filter = to_filter ? node.outputs[0].shape : graph.type(node.inputs[1]).shape;
    const bool depthwise = node.is(graph::ops::k_depthwise_conv2d_native,
                                   graph::ops::k_depthwise_conv2d_native_backprop_input,
                                   graph::ops::k_depthwise_conv2d_native_backprop_filter);
    const auto taps = static_cast<double>(filter[0] * filter[1] * (depthwise ? 1 : filter[2]));
    return 2 * (forward ? outputs : elements(2)) * taps;
  }
  return 0;
}

/// The first floating dtype of some types, else the first dtype, else "".
template <class Types>
std::string main_dtype(const Types& types) {
  for (const graph::TensorType& type : types) {
    if (is_floating(type.dtype)) return std::string(halfstep::name(type.dtype));
  }
  return types.empty() ? "" : std::string(halfstep::name(types.front().dtype));
}

/// The dtype that a weight's gradient is rounded to before it is unscaled; "" where a rewrite
/// decides.
std::string gradient_dtype(const config::PrecisionSpec& spec,
                           const precision::Policy& policy,
                           bool rewrite) {
  if (rewrite) return "";
  const bool wide = spec.grad_dtype == config::GradDtype::float32;
  return std::string(halfstep::name(wide ? DType::float32 : policy.compute));
}

/// How float16 matmuls are computed: as asked where matrix units work on parts of them, else in
/// float32, where they are exact. Nothing without float16 matmuls.
std::optional<Float16Gemm> float16_gemm(const config::PrecisionSpec& spec,
                                        const plan::Plan& plan,
                                        const std::vector<OpRow>& rows) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const OpRow& row) {
    return row.compute_dtype == "float16" && row.flops > 0;
  });
  if (!any) return std::nullopt;
  const bool exact = spec.float16_gemm == config::Float16Gemm::exact;
  const std::span<const plan::KernelChoice> launches = plan.kernels();
  const bool packs = std::any_of(launches.begin(), launches.end(), [&](const auto& launch) {
    const graph::Node& node = plan.graph().node(launch.node);
    return node.is(graph::ops::k_packed_matmul) ||
           (node.attrs.find("float16_products") != nullptr && launch.kernel.ends_with("by halves"));
  });
  return Float16Gemm{exact ? "exact" : "x3", exact || !packs ? "exact" : "x3"};
}

/// The narrowest dtype in which matmuls and convolutions are summed; "" without any.
std::string product_sums(const std::vector<OpRow>& rows) {
  std::optional<DType> narrowest;
  for (const OpRow& row : rows) {
    const auto dtype = row.flops > 0 ? dtype_named(row.accumulate_dtype) : std::nullopt;
    if (dtype && (!narrowest || size_bytes(*dtype) < size_bytes(*narrowest))) narrowest = dtype;
  }
  return narrowest ? std::string(halfstep::name(*narrowest)) : "";
}

bool any_half(const std::vector<OpRow>& rows) {
  for (const OpRow& row : rows) {
    if (is_half_name(row.compute_dtype) && row.flops > 0) return true;
  }
  return false;
}

}  // namespace

bool is_half_name(std::string_view dtype) { return dtype == "float16" || dtype == "bfloat16"; }

void run_by(OpRow& row, std::string kernel, const Processor& processor) {
  row.kernel = std::move(kernel);
  row.accumulate_dtype = accumulate_dtype(row.kernel, row.type, row.compute_dtype);
  row.tensor_core = uses_tensor_cores(row.kernel, row.compute_dtype, processor);
}

OpRow op_row(const Graph& graph, const Node& node) {
  std::vector<graph::TensorType> inputs;
  for (const graph::Value& input : node.inputs) inputs.push_back(graph.type(input));
  OpRow row;
  row.name = node.name;
  row.type = node.op;
  row.layer = node.origin.layer;
  row.phase = name(node.origin.phase);
  row.in_dtype = main_dtype(inputs);
  row.out_dtype = main_dtype(node.outputs);
  const graph::AttrValue* t = node.attrs.find("T");
  const DType* dtype = t != nullptr ? std::get_if<DType>(t) : nullptr;
  row.compute_dtype = dtype != nullptr ? std::string(halfstep::name(*dtype)) : row.out_dtype;
  row.reason = node.origin.reason;
  row.flops = node_flops(graph, node);
  return row;
}

std::vector<OpRow> op_rows(const train::Session& session, const plan::Plan& plan) {
  const Processor processor = processor_of(session);
  std::vector<OpRow> rows;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    if (choice.kernel.empty()) continue;
    rows.push_back(op_row(plan.graph(), plan.graph().node(choice.node)));
    run_by(rows.back(), choice.kernel, processor);
  }
  return rows;
}

double flops(const plan::Plan& plan) {
  double sum = 0;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    if (!choice.kernel.empty()) sum += node_flops(plan.graph(), plan.graph().node(choice.node));
  }
  return sum;
}

Precision precision_block(const train::Session& session, const plan::Plan& plan) {
  const config::PrecisionSpec& spec = session.spec().precision;
  const precision::Policy* policy = precision::policy_named(spec.policy);
  const bool rewrite = spec.rewrite == config::Rewrite::automatic;
  const train::Prepared& prepared = session.prepared();
  const bool wants_half = rewrite || is_half(policy->compute);
  Precision block;
  block.ops = op_rows(session, plan);
  block.requested = rewrite ? "rewrite" : spec.policy;
  block.effective = wants_half && !any_half(block.ops) ? "float32" : block.requested;
  block.compute_dtype =
      rewrite ? prepared.rewrite.target : std::string(halfstep::name(policy->compute));
  block.variable_dtype = halfstep::name(policy->variable);
  block.accumulate_dtype = product_sums(block.ops);
  block.float32_math = spec.float32_math == config::Float32Math::tf32 ? "tf32" : "ieee";
  block.grad_dtype = gradient_dtype(spec, *policy, rewrite);
  block.float16_gemm = float16_gemm(spec, plan, block.ops);
  block.rewrite = prepared.rewrite;
  return block;
}

Precision precision_block(train::Session& session) {
  return precision_block(session,
                         session.plan(nn::Purpose::train, session.spec().training.batch_size));
}

}  // namespace halfstep::report
