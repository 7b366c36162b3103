// FusedElementwise: the reference kernel of each op of the body runs over whole tensors, in order.

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "backend/cpu/workspace_layout.h"
#include "graph/builder.h"
#include "graph/elementwise_body.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cpu {
namespace {

using graph::ElementwiseBody;
using graph::ElementwiseStep;
using graph::Value;

/// The unfused op of one step of the body, reading `x`.
Value unfused_op(graph::Builder& b,
                 const ElementwiseStep& step,
                 std::vector<Value> x,
                 const Shape& shape) {
  if (step.op == graph::ops::k_random_uniform_from_ordinal) {
    return b.add(
        step.op,
        std::move(x),
        {{"shape", shape}, {"seed", step.seed}, {"stream", step.stream}, {"first", step.first}});
  }
  if (step.op == graph::ops::k_cast) return b.add("Cast", std::move(x), {{"DstT", step.dtype}});
  // Broadcasts operands of different shapes explicitly where the op itself does not broadcast.
  for (Value& operand : x) {
    if (b.shape(operand) == shape || step.op == graph::ops::k_bias_add) continue;
    const Value extents = b.ints({shape.begin(), shape.end()});
    operand = b.add("BroadcastTo", {operand, extents});
  }
  if (step.op == graph::ops::k_broadcast_to) return x[0];
  graph::Attrs attrs;
  if (graph::op_table().find(step.op)->attr("alpha") != nullptr) attrs.set("alpha", step.alpha);
  return b.add(step.op, std::move(x), attrs);
}

class UnfusedLaunches final : public Launch {
 public:
  explicit UnfusedLaunches(const NodeView& node) : inputs_(node.inputs()) {
    graph::Builder b(graph_, graph::op_table());
    const auto& body = node.attrs().get<ElementwiseBody>("body");
    std::vector<Value> values;
    for (std::size_t i = 0; i < inputs_; ++i) {
      const graph::TensorType& type = node.input(i);
      values.push_back(b.placeholder("x" + std::to_string(i), type.dtype, type.shape));
    }
    for (const ElementwiseStep& step : body.steps) {
      std::vector<Value> x;
      for (const int operand : step.operands)
        x.push_back(values[static_cast<std::size_t>(operand)]);
      values.push_back(unfused_op(b, step, std::move(x), node.output().shape));
    }
    for (const int result : body.results) {
      results_.push_back(values[inputs_ + static_cast<std::size_t>(result)].node);
    }
    tensors_.resize(static_cast<std::size_t>(graph_.size()));
    for (int id = static_cast<int>(inputs_); id < graph_.size(); ++id) add(id);
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(workspace_.bytes()); }

  void run(const Args& args) override {
    for (std::size_t i = 0; i < inputs_; ++i) tensors_[i] = args.in[i];
    for (OpLaunch& op : launches_) {
      const graph::Node& node = graph_.node(op.id);
      TensorView& y = tensors_[static_cast<std::size_t>(op.id)];
      y = {node.outputs[0].dtype, node.outputs[0].shape, args.workspace + op.offset};
      for (std::size_t i = 0; i < op.in.size(); ++i) {
        op.in[i] = tensors_[static_cast<std::size_t>(node.inputs[i].node)];
      }
      op.launch->run({op.in, {&y, 1}, args.workspace + op.workspace});
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const TensorView& y = tensors_[static_cast<std::size_t>(results_[i])];
      std::memcpy(args.out[i].data, y.data, y.bytes());
    }
  }

 private:
  struct OpLaunch {
    int id = 0;
    std::unique_ptr<Launch> launch;
    std::size_t offset = 0;  ///< of the result
    std::size_t workspace = 0;
    std::vector<TensorView> in;
  };

  std::size_t allocate(std::size_t bytes) {
    return static_cast<std::size_t>(workspace_.reserve(static_cast<std::int64_t>(bytes)));
  }

  void add(int id) {
    const graph::Node& node = graph_.node(id);
    if (node.is(graph::ops::k_const)) {
      // A constant shape: read when its kernel is prepared, so it needs no memory.
      tensors_[static_cast<std::size_t>(id)] = {
          node.outputs[0].dtype, node.outputs[0].shape, nullptr};
      return;
    }
    static const Backend reference = cpu_reference();
    const NodeView view{graph_, node};
    const Kernel* kernel = choose(reference, view).kernel;
    require(kernel != nullptr, "no reference kernel of {}", node.op);
    Prepared prepared = reference.prepare(*kernel, view);
    const TensorView result{node.outputs[0].dtype, node.outputs[0].shape, nullptr};
    launches_.push_back({id,
                         std::move(prepared.launch),
                         allocate(result.bytes()),
                         allocate(prepared.workspace_bytes),
                         std::vector<TensorView>(node.inputs.size())});
  }

  graph::Graph graph_;
  std::size_t inputs_;
  std::vector<OpLaunch> launches_;
  std::vector<TensorView> tensors_;  // by node
  std::vector<int> results_;
  WorkspaceLayout workspace_;
};

Prepared prepare_elementwise(const NodeView& node, const Capabilities&) {
  auto launches = std::make_unique<UnfusedLaunches>(node);
  const std::size_t bytes = launches->workspace_bytes();
  return {std::move(launches), bytes};
}

}  // namespace

std::vector<Kernel> fused_kernels() {
  return {{"FusedElementwise", "reference/fused_elementwise", executable, prepare_elementwise}};
}

}  // namespace halfstep::backend::cpu
