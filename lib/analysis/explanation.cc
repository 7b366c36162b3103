#include "analysis/explanation.h"

#include <array>
#include <map>
#include <set>

#include "analysis/work.h"
#include "backend/cost_model.h"
#include "backend/cuda/kernel_table.h"
#include "core/ranges.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"

namespace halfstep::analysis {
namespace {

using graph::Graph;
using graph::Node;

/// Ops that only provide values.
bool is_source(const Node& node) {
  static constexpr std::array<std::string_view, 5> k_sources{
      "Const", "Placeholder", "VarHandleOp", "ReadVariableOp", "NoOp"};
  return contains(k_sources, node.op);
}

/// The decision about each node: that of its attribute T, of a cast's target, else its first.
std::map<std::string, const plan::RewriteDecision*> by_node(const plan::RewriteSummary& rewrite) {
  std::map<std::string, const plan::RewriteDecision*> main;
  for (const plan::RewriteDecision& d : rewrite.decisions) {
    const plan::RewriteDecision*& best = main[d.node];
    if (best == nullptr || d.attr == "T" || d.attr == "DstT") best = &d;
  }
  return main;
}

constexpr graph::OpHandle k_moving_averages{"MovingAverages"};
constexpr graph::OpHandle k_update_loss_scale{"UpdateLossScale"};
constexpr graph::OpHandle k_assign_variable{"AssignVariableOp"};
constexpr graph::OpHandle k_assign_add{"AssignAddVariableOp"};

/// The launches of a lowered step, which must outlive them.
struct Launches {
  const Graph& graph;
  std::map<std::string, const plan::KernelChoice*> choices;  ///< by name of node
  std::map<std::string, std::string> updates;  ///< nodes that write several variables, by variable

  Launches(const Graph& lowered, std::span<const plan::KernelChoice> kernels) : graph(lowered) {
    for (const plan::KernelChoice& choice : kernels) {
      if (choice.kernel.empty()) continue;
      const Node& node = graph.node(choice.node);
      choices[node.name] = &choice;
      if (!node.is(graph::ops::k_grouped_update, k_moving_averages, k_update_loss_scale)) continue;
      for (const graph::Value& input : node.inputs) {
        if (graph.type(input).dtype == DType::resource) {
          updates[graph.node(input.node).name] = node.name;
        }
      }
    }
  }
};

constexpr std::string_view k_softmax_loss = "cuda/softmax_loss";
constexpr graph::OpHandle k_arg_max{"ArgMax"};

class Explainer {
 public:
  Explainer(train::Session& session, Launches launches, Processor processor, bool absent_gpu)
      : absent_gpu_(absent_gpu),
        processor_(std::move(processor)),
        graph_(passes::prune(session.prepared().graph)),
        backend_(session.backend()),
        decisions_(by_node(session.prepared().rewrite)),
        op_of_(static_cast<std::size_t>(graph_.size()), -1),
        launches_(std::move(launches)),
        readers_(static_cast<std::size_t>(graph_.size())) {
    for (int id = 0; id < graph_.size(); ++id) {
      for (const graph::Value& input : graph_.node(id).inputs) {
        // Readers of an op read its result, port 0; other ports hold statistics and the like.
        if (input.port == 0) readers_[at(input.node)].push_back(id);
      }
    }
  }

  std::vector<ExplainedOp> run() {
    std::vector<int> moved;  // nodes that move operands of a composite op
    int composite = -1;
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      const backend::Kernel* kernel = backend::choose(backend_, {graph_, node}).kernel;
      if (is_source(node) || (kernel != nullptr && node.def->aliases)) continue;
      if (node.moves_operands()) {
        // Operands are moved before their op in the forward pass, gradients behind it.
        const bool behind = composite >= 0 && belongs(node, ops_[at(composite)]);
        behind ? add_bytes(node, ops_[at(composite)]) : moved.push_back(id);
        continue;
      }
      op_of_[at(id)] = static_cast<int>(ops_.size());
      ops_.push_back(op(id));
      if (node.origin.composite == nullptr) continue;
      composite = op_of_[at(id)];
      for (const int before : moved) add_bytes(graph_.node(before), ops_.back());
      moved.clear();
    }
    return std::move(ops_);
  }

 private:
  ExplainedOp op(int id) {
    const Node& node = graph_.node(id);
    ExplainedOp op;
    op.info = op_info(graph_, node);
    op.step = "policy";
    if (const auto it = decisions_.find(node.name); it != decisions_.end()) {
      op.list = it->second->list;
      op.step = it->second->step;
      op.cause = it->second->cause;
      op.info.reason = it->second->reason;
    }
    find_kernel(id, op);
    predict(node, op);
    op.info.type = node.listed_op();
    add_bytes(node, op);
    if (node.is(graph::ops::k_cast) && is_floating(graph_.type(node.inputs[0]).dtype) &&
        is_floating(node.outputs[0].dtype)) {
      op.cast = true;
      op.cast_bytes = op.bytes + bytes_of(graph_.type(node.inputs[0]));
    }
    for (const graph::Value& input : node.inputs) add_reads(input.node, op.reads);
    return op;
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  /// Whether a node is of the layer and phase of an op.
  static bool belongs(const Node& node, const ExplainedOp& op) {
    return op.info.layer == node.origin.layer && op.info.phase == name(node.origin.phase);
  }
  static void add_bytes(const Node& node, ExplainedOp& op) {
    for (const graph::TensorType& type : node.outputs) {
      if (!is_floating(type.dtype)) continue;
      op.bytes += bytes_of(type);
      if (is_half(type.dtype)) op.half_bytes += bytes_of(type);
    }
  }

  /// The op that computes a value, found through aliases and reads.
  void add_reads(int id, std::vector<int>& reads) const {
    const int index = op_of_[at(id)];
    if (index >= 0) {
      if (!contains(reads, index)) reads.push_back(index);
      return;
    }
    const Node& node = graph_.node(id);
    if (!is_source(node) && !node.inputs.empty()) add_reads(node.inputs[0].node, reads);
  }

  /// The launch of that name, else the one of the op that it was fused into: a matmul beside it or
  /// before it for a sum of columns, the update of several variables for that of one, the loss
  /// around it, a reader for others.
  void find_kernel(int id, ExplainedOp& op) const {
    std::set<int> seen;
    int into = kernel_of(id).empty() ? reducing_matmul(id) : id;
    if (into < 0) into = grouped_update(id);
    if (into < 0) into = launched(id, seen);
    if (into < 0) return;
    const std::string& name = graph_.node(into).name;
    const plan::KernelChoice& choice = *launches_.choices.at(name);
    const Node& launch = launches_.graph.node(choice.node);
    // The op has 16 bits in the model, but runs in float32 on shared operands (share_widened).
    const bool widened = launch.is(graph::ops::k_matmul, graph::ops::k_batch_matmul_v2) &&
                         launch.outputs[0].dtype == DType::float32 &&
                         is_half(graph_.node(into).outputs[0].dtype);
    run_by(op.info, choice.kernel + (widened ? " by float32" : ""), choice.algorithm, processor_);
    if (into != id) op.fused_into = name;
  }

  /// The kernel of the launch of the same name, "" without one.
  std::string_view kernel_of(int id) const {
    const auto it = launches_.choices.find(graph_.node(id).name);
    return it == launches_.choices.end() ? std::string_view() : it->second->kernel;
  }

  void predict(const Node& node, ExplainedOp& op) const {
    if (backend_.device || absent_gpu_ || !is_half_name(op.info.compute_dtype)) return;
    const auto workload = backend::workload_of({graph_, node});
    if (!workload) return;
    for (const auto& p : backend::cost_model(backend_.capabilities).predictions(*workload)) {
      if (could_run(p.kernel, node)) op.predicted.push_back({std::string(p.kernel), p.seconds});
    }
  }

  /// Whether a kernel accepts the node. A kernel of PackedMatMul, which a MatMul may become, counts
  /// as accepting.
  bool could_run(std::string_view name, const Node& node) const {
    for (const backend::Kernel& kernel : backend_.kernels) {
      if (kernel.name != name || (kernel.op != node.op && kernel.op != graph::ops::k_packed_matmul))
        continue;
      return kernel.op == graph::ops::k_packed_matmul ||
             bool(kernel.accepts({graph_, node}, backend_.capabilities));
    }
    return false;
  }

  /// The matmul that sums the columns of a BiasAddGrad, which has no launch; -1 for other ops.
  int reducing_matmul(int id) const {
    const Node& node = graph_.node(id);
    if (!node.is(graph::ops::k_bias_add_grad)) return -1;
    const int dy = node.inputs[0].node;
    std::vector<int> candidates{dy};
    const std::vector<int>& beside = readers_[at(dy)];
    candidates.insert(candidates.end(), beside.begin(), beside.end());
    for (const int candidate : candidates) {
      const std::string_view kernel = kernel_of(candidate);
      if (kernel.find("fused_matmul") != std::string_view::npos) return candidate;
      if (candidate == dy && kernel.starts_with("packed")) return candidate;
    }
    return -1;
  }

  /// The update of several variables that contains the update or assignment of one; -1 for others.
  int grouped_update(int id) const {
    const Node& node = graph_.node(id);
    if (!node.def->update && !node.is(k_assign_variable, k_assign_add)) return -1;
    const auto update = launches_.updates.find(graph_.node(node.inputs[0].node).name);
    return update == launches_.updates.end() ? -1 : graph_.find(update->second);
  }

  /// The loss that computes the softmax beside it and ops after it, too: the mean, the count of
  /// correct rows, the gradient.
  int loss_before(int id) const {
    const Node& node = graph_.node(id);
    const std::string_view kernel = kernel_of(id);
    if (!kernel.empty()) return kernel == k_softmax_loss ? id : -1;
    if (node.is(graph::ops::k_softmax)) {
      for (const int beside : readers_[at(node.inputs[0].node)]) {
        if (kernel_of(beside) == k_softmax_loss) return beside;
      }
    }
    const bool contained = graph::ops::elementwise_operands(node.op) > 0 ||
                           node.is(graph::ops::k_mean, graph::ops::k_sum, k_arg_max);
    for (const graph::Value& input : node.inputs) {
      const int loss = contained ? loss_before(input.node) : -1;
      if (loss >= 0) return loss;
    }
    return -1;
  }

  int launched(int id, std::set<int>& seen) const {
    if (const int loss = loss_before(id); loss >= 0) return loss;
    if (!kernel_of(id).empty()) return id;
    if (const int update = grouped_update(id); update >= 0) return update;
    if (!seen.insert(id).second) return -1;
    for (int reader : readers_[at(id)]) {
      const int found = launched(reader, seen);
      if (found >= 0) return found;
    }
    return -1;
  }

  bool absent_gpu_;
  Processor processor_;
  Graph graph_;
  const backend::Backend& backend_;
  std::map<std::string, const plan::RewriteDecision*> decisions_;
  std::vector<int> op_of_;
  Launches launches_;
  std::vector<std::vector<int>> readers_;
  std::vector<ExplainedOp> ops_;
};

void add_up(Explanation& e) {
  double half_flops = 0, half_bytes = 0;
  for (const ExplainedOp& op : e.ops) {
    e.flops += op.info.flops;
    if (is_half_name(op.info.compute_dtype)) half_flops += op.info.flops;
    e.bytes += op.bytes;
    half_bytes += op.half_bytes;
    if (op.cast) ++e.casts;
    e.cast_bytes += op.cast_bytes;
  }
  e.half_flops_share = e.flops > 0 ? half_flops / e.flops : 0;
  e.half_bytes_share = e.bytes > 0 ? half_bytes / e.bytes : 0;
}

}  // namespace

const ExplainedOp* Explanation::find(std::string_view name) const {
  return find_or_null(
      ops, name, [](const ExplainedOp& op) { return std::string_view(op.info.name); });
}

Explanation explain(train::Session& session, const std::string& gpu) {
  const config::RunSpec& spec = session.spec();
  Explanation e;
  e.rewrite = session.prepared().rewrite;
  e.policy = e.rewrite.target.empty() ? spec.precision.policy : "rewrite to " + e.rewrite.target;
  e.device = gpu.empty() ? session.backend().name : "cuda";
  const Processor processor = processor_of(session, gpu);
  e.arch = processor.arch;
  e.batch = spec.training.batch_size;
  const plan::Plan& plan = session.plan(nn::Purpose::train, e.batch);
  if (gpu.empty()) {
    e.predicted_step = predict_step(session);
    e.rank_messages = rank_messages(plan.graph(), session.backend().device != nullptr);
    e.ops = Explainer(session, {plan.graph(), plan.kernels()}, processor, false).run();
  } else {
    const int capability = compute_capability(gpu);
    backend::Backend absent = backend::cuda::absent_gpu(capability);
    absent.capabilities.ranks = session.backend().capabilities.ranks;
    const Graph lowered = plan::lower(session.prepared().graph, absent, session.lowering()).graph;
    const std::vector<plan::KernelChoice> kernels = kernels_of(lowered, absent);
    e.predicted_step = predict_step(lowered, kernels, capability, processor.tf32);
    e.rank_messages = rank_messages(lowered, true);
    e.ops = Explainer(session, {lowered, kernels}, processor, true).run();
  }
  add_up(e);
  return e;
}

Comparison compare(const Explanation& a, const Explanation& b) {
  Comparison comparison;
  for (const ExplainedOp& right : b.ops) {
    const ExplainedOp* left = right.cast ? nullptr : a.find(right.info.name);
    if (left == nullptr) continue;
    const OpInfo &x = left->info, &y = right.info;
    if (x.compute_dtype == y.compute_dtype && x.out_dtype == y.out_dtype) {
      ++comparison.equal;
    } else {
      comparison.differing.emplace_back(left, &right);
    }
  }
  return comparison;
}

void Prediction::fields(Fields& f) {
  f("kernel", kernel, "that could run it");
  f("seconds", seconds, "of one thread for 512 samples");
}

void ExplainedOp::fields(Fields& f) {
  info.describe(f, true);
  f.text_or_null("fused_into", fused_into, "op whose launch computes this one too");
  f.text_or_null("list", list, "of the rewrite that names the op");
  f("step", step, "of the rewrite that decided; policy without one");
  f.text_or_null("cause", cause, "op whose list decided the dtype, or that prevents 16 bits");
  f("bytes", bytes, "of its floating outputs");
  f("cast_bytes", cast_bytes, "read and written, when it casts between floating dtypes");
  f("predicted",
    predicted,
    {.doc = "by the cost model of the CPU, the fastest first; empty for other ops and devices",
     .each = "one prediction"});
}

void Explanation::fields(Fields& f) {
  f("policy", policy, "or the rewrite and its target");
  f("device", device, "backend that would compute");
  f("arch", arch, "instruction set or GPU, present or chosen by --arch");
  f("batch_size", batch, {.doc = "samples per step", .min = 1});
  f("ops",
    ops,
    {.doc = "every op that the precision passes decided about, in order",
     .each = "one launch of a step"});
  f("rewrite", rewrite, "result of the automatic rewrite");
  f("casts_executed", casts, "casts between floating dtypes in a step");
  f("cast_bytes", cast_bytes, "bytes read and written by them in a step");
  f("flops_per_step", flops, "of matmuls and convolutions");
  f.fraction("half_flops_share", half_flops_share, "of matmuls and convolutions");
  f.fraction("half_bytes_share", half_bytes_share, "of all outputs");
  f("predicted_step",
    predicted_step,
    {.doc = "launches of a step on a GPU with predicted times; null on a CPU", .optional = true});
  f("rank_messages",
    rank_messages,
    {.doc = "of a step of several ranks; null for one process", .optional = true});
}

}  // namespace halfstep::analysis
