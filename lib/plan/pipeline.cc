#include "plan/pipeline.h"

#include <algorithm>
#include <array>

#include "backend/cost_model.h"
#include "core/error.h"
#include "graph/graph.h"
#include "nn/step_graph.h"
#include "passes/lowering.h"

namespace halfstep::plan {

using graph::Graph;
using graph::Node;

namespace {

/// The kernel that would run an op; nullptr without one and for a reference kernel.
const backend::Kernel* kernel(const backend::Backend& backend, const backend::NodeView& op) {
  const backend::Kernel* kernel = backend::choose(backend, op).kernel;
  return kernel != nullptr && !kernel->reference ? kernel : nullptr;
}

passes::Target target_of(const backend::Backend& backend, const Lowering& lowering) {
  passes::Target target;
  target.supports = [&backend](const graph::OpInstance& op) {
    return kernel(backend, backend::NodeView(op)) != nullptr;
  };
  target.packing_pays = [&backend](const graph::OpInstance& matmul,
                                   const graph::OpInstance& packed) {
    const backend::NodeView view(packed);
    const backend::Kernel* chosen = kernel(backend, view);
    return chosen != nullptr &&
           backend::packing_pays(
               backend::NodeView(matmul), view, chosen->name, backend.capabilities);
  };
  target.widens = [&backend](const graph::OpInstance& op) {
    const backend::Kernel* chosen = kernel(backend, backend::NodeView(op));
    return chosen != nullptr && chosen->widens;
  };
  target.beats_packing = [&backend](const graph::OpInstance& op) {
    const backend::Kernel* chosen = kernel(backend, backend::NodeView(op));
    return chosen != nullptr && chosen->beats_packing;
  };
  target.float16_products = lowering.float16_products;
  if (backend.capabilities.compute_capability > 0) {
    // On a GPU a partly filled block of scores costs less than the launches of the unfused chain.
    target.attention_block = 1;
    // Tensor cores read rows at multiples of 16 bytes.
    target.row_multiple = 8;
  }
  return target;
}

constexpr std::array k_passes{
    Pass{.name = "differentiate",
         .run = nn::differentiate_loss,
         .reason = "appends the gradients of the weights, op by op, from the scaled loss backward",
         .required = "the updates apply its gradients"},
    Pass{.name = "promote_weight_gradients",
         .run = nn::promote_weight_gradients,
         .reason = "computes gradients of weights in float32 where precision.grad_dtype says so; "
                   "before their first readers are appended",
         .exact = false},
    Pass{.name = "accumulate_gradients",
         .run = nn::accumulate_gradients,
         .reason = "appends the further parts of a batch that training.accumulate_steps divides, "
                   "and adds their gradients; before the sum over the ranks, which is then one",
         .required = "a step would train on a part of its batch"},
    Pass{.name = "all_reduce",
         .run = nn::all_reduce,
         .reason = "adds gradients, loss and metrics over the ranks of the run, in buckets; before "
                   "the finite check, so that all ranks skip a step or none does",
         .required = "each rank would train a model of its own"},
    Pass{.name = "append_updates",
         .run = nn::append_updates,
         .reason = "appends unscaling, the finite check, clipping, the optimizer's updates and the "
                   "next loss scale",
         .required = "without updates a step trains nothing"},
    Pass{.name = "rewrite",
         .run = prepare_graph,
         .reason = "prunes and converts the graph by TensorFlow's lists, where precision.rewrite "
                   "says so; sees the ops of the model, not fused ones",
         .exact = false},
    Pass{.name = "prune",
         .run = [](const Graph& g, const passes::Target&) { return passes::prune(g); },
         .reason = "removes nodes that neither a fetch nor an update needs"},
    Pass{.name = "fuse_attention",
         .run = passes::fuse_attention,
         .reason =
             "computes attention in blocks, forward and backward, without a tensor of scores; "
             "before casts of the chain are moved or fused elsewhere",
         .hides_values = true,
         .exact = false},
    Pass{.name = "merge_scalars",
         .run = passes::merge_scalars,
         .reason = "computes numbers once that several updates need"},
    Pass{.name = "fuse_finite",
         .run = passes::fuse_finite,
         .reason = "makes the finite check one read of each gradient, without tensors of flags"},
    Pass{.name = "hoist_casts",
         .run = passes::hoist_casts,
         .reason =
             "moves a Cast before a Reshape, so that the op that computes the value stores it "
             "cast",
         .hides_values = true},
    Pass{.name = "fuse_norms",
         .run = passes::fuse_norms,
         .reason =
             "applies the addition and the ReLU after a batch normalization before its result "
             "is stored, and the additions around a layer normalization",
         .hides_values = true},
    Pass{.name = "fuse_softmax_loss",
         .run = passes::fuse_softmax_loss,
         .reason = "computes the softmax, the loss, the accuracy and the gradient of the logits in "
                   "one pass over them",
         .hides_values = true},
    Pass{.name = "swap_relu_maxpool",
         .run = passes::swap_relu_maxpool,
         .reason = "runs a ReLU that no normalization took after the max pooling, over fewer "
                   "elements",
         .hides_values = true},
    Pass{.name = "fuse_convolutions",
         .run = passes::fuse_convolutions,
         .reason = "adds the bias of a convolution to the accumulators, and applies the ReLU",
         .hides_values = true,
         .exact = false},
    Pass{.name = "group_squares",
         .run = passes::group_squares,
         .reason = "computes the norms of all gradients, and all L2 penalties, by one launch each; "
                   "before fuse_updates lets it read 16-bit gradients",
         .hides_values = true,
         .exact = false},
    Pass{
        .name = "fuse_updates",
        .run = passes::fuse_updates,
        .reason = "lets updates and the finite check widen and unscale gradients as they read them",
        .hides_values = true},
    Pass{.name = "set_float16_products",
         .run = passes::set_float16_products,
         .reason = "tells float16 convolutions the number of partial products "
                   "(precision.float16_gemm)",
         .exact = false},
    Pass{.name = "pack_matmuls",
         .run = passes::pack_matmuls,
         .reason = "packs the operands of 16-bit MatMuls once, in the order in which matrix units "
                   "read them",
         .hides_values = true,
         .exact = false},
    Pass{.name = "fuse_packed_epilogue",
         .run = passes::fuse_packed_epilogue,
         .reason =
             "runs bias, activation, column sums and packing in the epilogue of packed MatMuls",
         .hides_values = true,
         .exact = false},
    Pass{.name = "fuse_library_epilogue",
         .run = passes::fuse_library_epilogue,
         .reason = "runs bias, activation and mask in the epilogue of a library's GEMM; after "
                   "pack_matmuls took its share",
         .hides_values = true,
         .exact = false},
    Pass{.name = "persist_packed_weights",
         .run = passes::persist_packed_weights,
         .reason = "keeps packed weights from step to step; the update writes them with the weight",
         .hides_values = true},
    Pass{.name = "group_updates",
         .run = passes::group_updates,
         .reason = "updates all variables by one launch, which also writes their 16-bit copies; "
                   "after the passes that pack variables",
         .hides_values = true},
    Pass{.name = "pad_logits",
         .run = passes::pad_logits,
         .reason = "gives 16-bit logits, and the weights and gradients of their layer, rows at "
                   "multiples of 16 bytes for tensor cores; after group_updates, which then reads "
                   "and writes them so",
         .hides_values = true,
         .exact = false},
    Pass{.name = "group_assignments",
         .run = passes::group_assignments,
         .reason = "updates the moving averages of all layers by one launch, and counts the steps "
                   "in the update of the loss scale; before chains of their ops are fused"},
    Pass{.name = "fuse_update_into_matmul",
         .run = passes::fuse_update_into_matmul,
         .reason =
             "applies a weight's gradient in the epilogue of the GEMM that computes it, where "
             "only the update reads it",
         .hides_values = true},
    Pass{.name = "fuse_packing_into_matmul",
         .run = passes::fuse_packing_into_matmul,
         .reason = "packs the left operand of a narrow MatMul in a cache, panel by panel as it is "
                   "multiplied; after the passes that write operands packed"},
    Pass{.name = "share_widened",
         .run = passes::share_widened,
         .reason =
             "rounds small values to 16 bits but stores them as float32 where matmuls multiply "
             "float32 copies; before chains of casts are fused",
         .hides_values = true},
    Pass{.name = "fuse_casts_into_sums",
         .run = passes::fuse_casts_into_sums,
         .reason = "lets the float32 gradients of biases read 16-bit values; after the passes that "
                   "sum columns in the epilogue of a matmul",
         .hides_values = true},
    Pass{.name = "fuse_elementwise",
         .run = passes::fuse_elementwise,
         .reason = "makes chains of elementwise ops that are left one pass over memory",
         .hides_values = true},
    Pass{.name = "start_sums_early",
         .run = passes::start_sums_early,
         .reason =
             "starts the sum of a bucket of gradients as soon as they are computed, so that it "
             "travels beside the backward pass, in one order on all ranks, and gathers divided "
             "weights beside the next forward pass; after the passes that place nodes"},
};

bool same(const Node& a, const Node& b) {
  return a.name == b.name && a.op == b.op && a.inputs == b.inputs && a.control == b.control &&
         a.attrs == b.attrs && a.outputs == b.outputs && a.preserve == b.preserve;
}

bool same(const Graph& a, const Graph& b) {
  if (a.size() != b.size() || a.fetches() != b.fetches()) return false;
  for (int id = 0; id < a.size(); ++id) {
    if (!same(a.node(id), b.node(id))) return false;
  }
  return true;
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Pass& pass : k_passes) names.emplace_back(pass.name);
  return names;
}

void notify(const PassOptions& options, const PassRun& run) {
  if (options.observer) options.observer(run);
}

}  // namespace

std::string_view name(PassStage stage) {
  static constexpr std::array<std::string_view, 3> k_names{"training", "precision", "lowering"};
  return k_names[static_cast<std::size_t>(stage)];
}

std::span<const Pass> passes() { return k_passes; }

const Pass& pass_named(std::string_view name, const Where& where) {
  for (const Pass& pass : k_passes) {
    if (pass.name == name) return pass;
  }
  throw UserError(ErrorKind::config,
                  where,
                  fmt::format("unknown pass '{}'", name),
                  choices(name, names(), "halfstep explain --passes"));
}

void check_skippable(const std::set<std::string, std::less<>>& names, const Where& where) {
  for (const std::string& name : names) {
    const Pass& pass = pass_named(name, where);
    if (pass.required.empty()) continue;
    throw UserError(ErrorKind::config,
                    where,
                    fmt::format("{} cannot be skipped: {}", pass.name, pass.required));
  }
}

Prepared build_step(const nn::StepSpec& step_spec,
                    const nn::DataShape& data,
                    const BatchShare& batch,
                    nn::Purpose purpose,
                    const config::RunSpec& spec,
                    const PassOptions& options) {
  nn::StepBuilder step(step_spec, data, batch, purpose);
  nn::build_loss(step);
  Prepared prepared;
  for (const Pass& pass : k_passes) {
    const bool skipped = options.skip.contains(pass.name);
    const int before = step.graph.size();
    if (const auto* train = std::get_if<Pass::Training>(&pass.run)) {
      if (purpose != nn::Purpose::train) continue;
      if (!skipped) (*train)(step);
      // These passes only append nodes.
      notify(options, {pass, before, step.graph, step.graph.size() != before, skipped});
    } else if (const auto* rewrite = std::get_if<Pass::Precision>(&pass.run)) {
      const Graph original = options.observer ? step.graph : Graph{};
      if (skipped) {
        prepared.rewrite.nodes_total = before;
        prepared.graph = std::move(step.graph);
      } else {
        prepared = (*rewrite)(std::move(step.graph), spec);
      }
      notify(options,
             {pass,
              before,
              prepared.graph,
              options.observer && !same(original, prepared.graph),
              skipped});
    }
  }
  return prepared;
}

Lowered lower(const Graph& graph, const backend::Backend& backend, const Lowering& lowering) {
  graph::verify(graph, "building the step");
  const passes::Target target = target_of(backend, lowering);
  Lowered lowered{graph};
  for (const Pass& pass : k_passes) {
    const auto* run = std::get_if<Pass::Lowering>(&pass.run);
    if (run == nullptr) continue;
    const int before = lowered.graph.size();
    if ((pass.hides_values && !lowering.hides_values) || lowering.passes.skip.contains(pass.name)) {
      notify(lowering.passes, {pass, before, lowered.graph, false, true});
      continue;
    }
    Graph after = (*run)(lowered.graph, target);
    graph::verify(after, pass.name);
    const bool changed = !same(lowered.graph, after);
    lowered.graph = std::move(after);
    if (pass.hides_values && changed) lowered.hides_values = true;
    notify(lowering.passes, {pass, before, lowered.graph, changed, false});
  }
  return lowered;
}

}  // namespace halfstep::plan
