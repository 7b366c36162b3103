#include "analysis/step_precision.h"

#include <algorithm>

#include "analysis/work.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::analysis {
namespace {

using graph::Graph;
using graph::Node;

constexpr std::string_view k_launch = "one launch of a step";
constexpr std::string_view k_launches = "every launch of a training step, in order";

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
  const bool float32 = spec.grad_dtype == config::GradDtype::float32;
  return std::string(halfstep::name(float32 ? DType::float32 : policy.compute));
}

/// How float16 matmuls are computed: as requested where matrix units compute them from bfloat16
/// parts, else exactly, in float32. Nothing without float16 matmuls.
std::optional<Float16Gemm> float16_gemm(const config::PrecisionSpec& spec,
                                        const plan::Plan& plan,
                                        const std::vector<OpInfo>& rows) {
  const bool any = std::ranges::any_of(
      rows, [](const OpInfo& row) { return row.compute_dtype == "float16" && row.flops > 0; });
  if (!any) return std::nullopt;
  const bool exact = spec.float16_gemm == config::Float16Gemm::exact;
  const std::span<const plan::KernelChoice> launches = plan.kernels();
  const bool packs = std::ranges::any_of(launches, [&](const auto& launch) {
    const graph::Node& node = plan.graph().node(launch.node);
    return node.is(graph::ops::k_packed_matmul) ||
           (node.attrs.find("float16_products") != nullptr && launch.kernel.ends_with("by halves"));
  });
  return Float16Gemm{exact ? "exact" : "x3", exact || !packs ? "exact" : "x3"};
}

/// The narrowest dtype in which matmuls and convolutions are summed; "" without any.
std::string matmul_accumulate_dtype(const std::vector<OpInfo>& rows) {
  std::optional<DType> narrowest;
  for (const OpInfo& row : rows) {
    const auto dtype = row.flops > 0 ? dtype_named(row.accumulate_dtype) : std::nullopt;
    if (dtype && (!narrowest || size_bytes(*dtype) < size_bytes(*narrowest))) narrowest = dtype;
  }
  return narrowest ? std::string(halfstep::name(*narrowest)) : "";
}

bool any_half(const std::vector<OpInfo>& rows) {
  for (const OpInfo& row : rows) {
    if (is_half_name(row.compute_dtype) && row.flops > 0) return true;
  }
  return false;
}

}  // namespace

void OpInfo::describe(Fields& f, bool may_have_no_kernel) {
  f("name", name, "node of the step graph");
  f("type", type, "op");
  f("layer", layer, "layer of the config; empty outside of layers");
  f("phase", phase, "input, forward, loss, backward, unscale, update, ...");
  f("in_dtype", in_dtype, "of the first floating input; empty without inputs");
  f("compute_dtype", compute_dtype, "the op computes in");
  f.text_or_null("accumulate_dtype",
                 accumulate_dtype,
                 "narrowest accumulator; null where nothing is accumulated, or it is not known");
  f("out_dtype", out_dtype, "of the first floating output; empty without outputs");
  f("reason", reason, "why it computes in this dtype");
  if (may_have_no_kernel) {
    f.text_or_null("kernel", kernel, "null where no kernel runs the op");
  } else {
    f("kernel", kernel, "implementation that ran");
  }
  f("flops", flops, {.doc = "of matmuls and convolutions, 2 per multiply-add", .optional = true});
  f("tensor_core", tensor_core, "whether tensor cores did the work; null where it is not known");
  f("algorithm",
    algorithm,
    {.doc = "that a library chose on a device, with workspace, padding and fused ops; else empty",
     .optional = true});
}

void Float16Gemm::fields(Fields& f) {
  f("requested", requested, "precision.float16_gemm");
  f("effective", effective, "exact, or x3: three partial products");
}

void PrecisionHead::fields(Fields& f) {
  f("requested", requested, "policy of the config, or rewrite");
  f("effective", effective, "precision in effect");
  f("compute_dtype", compute_dtype, "layers compute in");
  f("variable_dtype", variable_dtype, "weights are stored in");
  f.text_or_null(
      "accumulate_dtype", accumulate_dtype, "narrowest accumulator of matmuls; null without any");
  f("float32_math",
    float32_math,
    "ieee: float32 operands of matmuls are not shortened; tf32: they may be, to 10 bits");
  f.text_or_null(
      "grad_dtype", grad_dtype, "weight gradients are rounded to; null where a rewrite decides");
  f("float16_gemm", float16_gemm, "how float16 matmuls are computed; null without any");
  f("rewrite", rewrite, "result of the automatic rewrite");
}

std::string PrecisionHead::policy_name() const {
  return requested == "rewrite" && !rewrite.target.empty() ? "rewrite:" + rewrite.target
                                                           : requested;
}

void Precision::fields(Fields& f) {
  PrecisionHead::fields(f);
  f("ops", ops, {.doc = k_launches, .each = k_launch});
}

void PrecisionSummary::fields(Fields& f) {
  PrecisionHead::fields(f);
  f("ops", ops, {.doc = k_launches, .each = k_launch, .omitted = true});
}

void run_by(OpInfo& row,
            std::string kernel,
            const std::optional<backend::Algorithm>& algorithm,
            const Processor& processor) {
  row.kernel = std::move(kernel);
  row.accumulate_dtype = accumulate_dtype(row.kernel, row.type, row.compute_dtype);
  row.tensor_core = uses_tensor_cores(row.kernel, row.compute_dtype, processor);
  if (!algorithm) return;
  row.algorithm = algorithm->text;
  if (algorithm->tensor_cores) row.tensor_core = algorithm->tensor_cores;
}

OpInfo op_info(const Graph& graph, const Node& node) {
  std::vector<graph::TensorType> inputs;
  for (const graph::Value& input : node.inputs) inputs.push_back(graph.type(input));
  OpInfo row;
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
  row.flops = node_work(graph, node).flops;
  return row;
}

std::vector<OpInfo> op_rows(const train::Session& session, const plan::Plan& plan) {
  const Processor processor = processor_of(session);
  const Graph& prepared = session.prepared().graph;
  std::vector<OpInfo> rows;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    if (choice.kernel.empty()) continue;
    const Node& node = plan.graph().node(choice.node);
    rows.push_back(op_info(plan.graph(), node));
    std::string kernel = choice.kernel;
    // A 16-bit matmul may be computed in float32 of operands that other ops widened (pass
    // share_widened).
    const int id = rows.back().flops > 0 ? prepared.find(node.name) : -1;
    if (id >= 0 && is_half(prepared.node(id).outputs[0].dtype) &&
        node.outputs[0].dtype == DType::float32) {
      rows.back() = op_info(prepared, prepared.node(id));
      kernel += " by float32";
    }
    run_by(rows.back(), std::move(kernel), choice.algorithm, processor);
  }
  return rows;
}

double flops(const plan::Plan& plan) {
  double sum = 0;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    if (choice.kernel.empty()) continue;
    sum += node_work(plan.graph(), plan.graph().node(choice.node)).flops;
  }
  return sum;
}

Precision precision_of(const train::Session& session, const plan::Plan& plan) {
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
  block.accumulate_dtype = matmul_accumulate_dtype(block.ops);
  block.float32_math = spec.float32_math == config::Float32Math::tf32 ? "tf32" : "ieee";
  block.grad_dtype = gradient_dtype(spec, *policy, rewrite);
  block.float16_gemm = float16_gemm(spec, plan, block.ops);
  block.rewrite = prepared.rewrite;
  return block;
}

Precision precision_of(train::Session& session) {
  return precision_of(session,
                      session.plan(nn::Purpose::train, session.spec().training.batch_size));
}

}  // namespace halfstep::analysis
