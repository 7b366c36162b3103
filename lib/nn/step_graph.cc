#include "nn/step_graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "nn/layers/samples.h"
#include "nn/mixup.h"
#include "nn/output_loss.h"
#include "passes/lowering.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Origin;
using graph::Phase;
using graph::ScopeGuard;
using graph::Value;

/// Whether an input slot has the rows of the samples and then those of their partners.
bool has_partners(const StepBuilder& step) {
  return step.purpose == Purpose::train && step.spec.mixup_alpha.has_value();
}

/// The rows of the microbatch, sliced from the input slot of the batch. Slicing waits for the
/// previous microbatch.
Value batch_input(StepBuilder& step, std::string_view name, DType dtype, const Shape& sample) {
  Builder& b = step.b;
  const ScopeGuard scope(b, step_origin(Phase::input, ""), "");
  const bool partners = has_partners(step);
  const int known = step.graph.find(name);
  const Value all =
      known >= 0
          ? Value{known, 0}
          : b.placeholder(name, dtype, batched((partners ? 2 : 1) * step.share.samples, sample));
  if (step.num_microbatches == 1) return all;
  const auto slice_from = [&](std::int64_t first) {
    std::vector<std::int64_t> begin(sample.rank() + 1, 0);
    begin.front() = first;
    const Shape rows = batched(step.microbatch.samples, sample);
    const Value slice =
        b.add("Slice", {all, b.ints(std::move(begin)), b.ints({rows.begin(), rows.end()})});
    step.graph.node(slice.node).control = step.previous;
    return slice;
  };
  const std::int64_t first = step.microbatch.first - step.share.first;
  const Value own = slice_from(first);
  if (!partners) return own;
  return b.add("ConcatV2",
               {own, slice_from(step.share.samples + first), b.scalar(DType::int32, 0)});
}

/// Stored samples as float32 in the shape of the input; several inputs are concatenated.
Value prepare_input(StepBuilder& step) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const DataShape& data = step.data;
  const Value images = batch_input(step, "images", data.sample_dtype, data.sample);
  const ScopeGuard scope(b, step_origin(Phase::input, "the input is scaled in float32"), "input");
  Value x = b.cast(images, DType::float32);
  const double scale = spec.scale_of(data.sample_dtype);
  if (scale != 1) x = b.add("Mul", {x, b.scalar(DType::float32, scale)});
  const Shape wanted = sample_shape(spec.model);
  if (wanted.elements() != data.sample.elements() || !same_axes(wanted, data.sample)) {
    throw UserError(ErrorKind::config,
                    spec.input_where,
                    fmt::format("the data has samples of shape {}{}, the model takes {}",
                                to_string(data.sample),
                                data.stored.empty() ? "" : " (" + data.stored + ")",
                                to_string(wanted)),
                    wanted.rank() == 3 ? "an input is [height, width, channels]" : "");
  }
  return graph::ops::reshape(b, x, batched(b.shape(x)[0], wanted));
}

/// Slices the inputs of the model from samples in the shape of sample_shape().
std::vector<Value> cut_inputs(Builder& b, const Model& model, Value samples) {
  if (model.inputs.size() == 1) return {samples};
  const ScopeGuard scope(b, step_origin(Phase::input, "the input is scaled in float32"), "input");
  const std::int64_t rows = b.shape(samples)[0];
  std::vector<Value> inputs;
  std::int64_t first = 0;
  for (const Model::Input& input : model.inputs) {
    const std::int64_t values = input.shape.elements();
    const Value part = b.add("Slice", {samples, b.ints({0, first}), b.ints({rows, values})});
    inputs.push_back(graph::ops::reshape(b, part, batched(rows, input.shape)));
    first += values;
  }
  return inputs;
}

/// The forward pass on a microbatch.
struct BuiltModel {
  Forward forward;
  std::optional<Mixup> mixup;
};

BuiltModel build_model(StepBuilder& step) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const int known = step.graph.find("ordinal");
  const Value ordinal = known >= 0 ? Value{known, 0} : b.placeholder("ordinal", DType::int64, {});
  BuiltModel built;
  const Origin mixed = step_origin(Phase::input, "samples are mixed in float32");
  if (has_partners(step)) {
    const ScopeGuard scope(b, mixed, "input");
    built.mixup.emplace(b, *spec.mixup_alpha, ordinal, spec.seed, step.microbatch);
  }
  Value x = prepare_input(step);
  if (built.mixup) {
    const ScopeGuard scope(b, mixed, "input");
    x = built.mixup->mean_of_halves(x);
  }
  std::vector<Value> inputs = cut_inputs(b, spec.model, x);
  const ScopeGuard scope(b, step_origin(Phase::forward, ""), "");
  built.forward = build_forward(b,
                                spec.model,
                                std::move(inputs),
                                ordinal,
                                spec.seed,
                                step.purpose == Purpose::train,
                                step.microbatch);
  return built;
}

/// The masks of the outputs without the labels that their losses ignore.
std::vector<Value> masks_of_labels(StepBuilder& step, const Forward& forward) {
  std::vector<Value> masks = forward.masks;
  const Origin origin = step_origin(Phase::loss, "masked losses are averaged over the batch");
  const ScopeGuard scope(step.b, origin, "kept");
  std::vector<OutputNodes> outputs;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    outputs.push_back(begin_output(step, i, forward.outputs.at(i)));
  }
  check_labels(step, outputs);
  for (const OutputNodes& nodes : outputs) {
    if (!nodes.spec.is_labelled() || !nodes.spec.loss->ignored_class()) continue;
    const Value all = batch_input(step, "labels", step.data.label_dtype, step.data.label);
    Value& mask = masks[nodes.index];
    const Value counted = counted_labels(step, nodes, output_labels(step, nodes, all));
    mask = both_masks(step, nodes, mask, counted);
  }
  step.graph.fetches().clear();
  return masks;
}

/// Begins the graph of a step of several microbatches with the number of losses that masks keep in
/// the full batch, by which each microbatch divides its loss. Does nothing without a mask.
void count_kept_in_full_batch(StepBuilder& step) {
  StepBuilder full(step.spec, step.data, step.share, step.purpose);
  full.num_microbatches = 1;
  full.microbatch = full.share;
  std::vector<Value> masks = masks_of_labels(full, build_model(full).forward);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (!step.spec.outputs[i].is_labelled()) masks[i] = {};
  }
  if (std::ranges::none_of(masks, &Value::valid)) return;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (!masks[i].valid()) continue;
    full.graph.fetches().emplace_back(step.spec.outputs[i].named("kept"),
                                      count_kept(full, masks[i]));
  }
  step.graph = passes::prune(full.graph);
  std::erase_if(step.graph.variables(),
                [&](const graph::Variable& v) { return step.graph.find(v.name) < 0; });
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks[i].valid()) step.kept[i] = step.graph.fetch(step.spec.outputs[i].named("kept"));
  }
  step.graph.fetches().clear();
}

}  // namespace

Origin step_origin(Phase phase, std::string reason, std::string layer) {
  return {std::move(layer), phase, std::move(reason), {}};
}

void build_loss(StepBuilder& step) {
  Builder& b = step.b;
  Graph& graph = step.graph;
  const StepSpec& spec = step.spec;
  if (step.num_microbatches > 1 && graph.size() == 0) count_kept_in_full_batch(step);
  auto [forward, mixup] = build_model(step);
  for (const Assignment& state : forward.record.assignments) {
    if (step.purpose == Purpose::train) break;
    const ScopeGuard scope(b, step_origin(Phase::forward, "states are float32"), "states");
    // A rewrite leaves the node of a fetch as it is, which the layer's own is not to be.
    graph.fetches().emplace_back(graph.node(state.handle.node).name,
                                 b.add("Identity", {state.value}));
  }
  const Origin origin = step_origin(Phase::loss, "losses are computed in float32");
  std::vector<OutputNodes> outputs;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const ScopeGuard scope(b, origin, spec.outputs[i].named("loss"));
    outputs.push_back(begin_output(step, i, forward.outputs.at(i)));
  }
  if (step.purpose == Purpose::predict) return;
  check_labels(step, outputs);
  const ScopeGuard loss_scope(b, origin, "loss");
  const Value labels = batch_input(step, "labels", step.data.label_dtype, step.data.label);
  Value sample_weights;
  if (spec.sample_weights) sample_weights = batch_input(step, "sample_weights", DType::float32, {});
  std::vector<Value> losses;
  for (OutputNodes& nodes : outputs) {
    if (!nodes.spec.is_labelled()) continue;
    const ScopeGuard scope(b, origin, nodes.spec.named("loss"));
    nodes.sample_weights = sample_weights;
    build_output_loss(step, nodes, labels, forward.masks[nodes.index], mixup);
    if (!nodes.spec.has_loss) continue;
    const double weight = nodes.spec.loss_weight;
    losses.push_back(weight == 1 ? nodes.loss
                                 : b.add("Mul", {nodes.loss, b.scalar(DType::float32, weight)}));
  }
  step.loss = losses[0];
  for (std::size_t i = 1; i < losses.size(); ++i)
    step.loss = b.add("AddV2", {step.loss, losses[i]});
  for (const Value& term : forward.record.losses) step.loss = b.add("AddV2", {step.loss, term});
  step.loss = weighted_by_share(b, step.loss, step.microbatch);
  graph.fetches().emplace_back("loss", step.loss);
  for (const OutputNodes& nodes : outputs) {
    const ScopeGuard scope(b, origin, nodes.spec.named("loss"));
    build_metrics(step, nodes);
  }
  step.record = std::move(forward.record);
}

Value weighted_by_share(Builder& b, Value mean, const BatchShare& share) {
  if (share.weighted_samples == share.batch) return mean;
  const double weight =
      static_cast<double>(share.weighted_samples) / static_cast<double>(share.batch);
  return b.add("Mul", {mean, b.scalar(b.dtype(mean), weight)});
}

Graph build_step(const StepSpec& spec,
                 const DataShape& data,
                 const BatchShare& batch,
                 Purpose purpose) {
  StepBuilder step(spec, data, batch, purpose);
  build_loss(step);
  if (purpose == Purpose::train) {
    differentiate_loss(step);
    promote_weight_gradients(step);
    accumulate_gradients(step);
    all_reduce(step);
    append_updates(step);
  }
  return std::move(step.graph);
}

}  // namespace halfstep::nn
