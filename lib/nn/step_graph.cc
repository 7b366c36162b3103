#include "nn/step_graph.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "nn/metric.h"
#include "nn/mixup.h"
#include "passes/lowering.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Origin;
using graph::Phase;
using graph::ScopeGuard;
using graph::Value;

Shape batched(std::int64_t rows, const Shape& sample) {
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), sample.begin(), sample.end());
  return Shape(dims);
}

/// Whether an input slot has the rows of the samples and then those of their partners.
bool has_partners(const StepDraft& step) {
  return step.purpose == Purpose::train && step.spec.mixup_alpha.has_value();
}

/// The rows of the part that is built, from an input slot with those of all parts. A part begins
/// with its images.
Value input_rows(StepDraft& step, std::string_view name, DType dtype, const Shape& sample) {
  Builder& b = step.b;
  const ScopeGuard scope(b, step_origin(Phase::input, ""), "");
  const bool partners = has_partners(step);
  const int known = step.graph.find(name);
  const Value all =
      known >= 0
          ? Value{known, 0}
          : b.placeholder(name, dtype, batched((partners ? 2 : 1) * step.share.rows, sample));
  if (step.parts == 1) return all;
  const auto slice_from = [&](std::int64_t first) {
    std::vector<std::int64_t> begin(sample.rank() + 1, 0);
    begin.front() = first;
    const Shape rows = batched(step.part.rows, sample);
    const Value slice =
        b.add("Slice", {all, b.ints(std::move(begin)), b.ints({rows.begin(), rows.end()})});
    step.graph.node(slice.node).control = step.previous;
    return slice;
  };
  const std::int64_t first = step.part.first - step.share.first;
  const Value own = slice_from(first);
  if (!partners) return own;
  return b.add("ConcatV2", {own, slice_from(step.share.rows + first), b.scalar(DType::int32, 0)});
}

/// Stored samples as float32 in the shape of the input; those of several inputs in one row.
Value prepare_input(StepDraft& step) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const DataShape& data = step.data;
  const Value images = input_rows(step, "images", data.sample_dtype, data.sample);
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

/// The inputs of the model, cut out of samples in the shape of sample_shape().
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

/// The scores that a final activation was applied to, found through casts, in float32.
Value scores_behind(Builder& b, Value output, std::string_view activation) {
  const graph::Node* node = &b.graph().node(output.node);
  while (node->is(graph::ops::k_cast)) node = &b.graph().node(node->inputs[0].node);
  return node->op == activation ? b.cast(node->inputs[0], DType::float32) : Value{};
}

/// Rows of `classes` scores, one for each position of each sample; anything else stays as it is.
Value flatten_positions(Builder& b, Value scores) {
  if (!scores.valid() || b.shape(scores).rank() <= 2) return scores;
  const Shape& shape = b.shape(scores);
  return graph::ops::reshape(b, scores, {shape.elements() / shape.back(), shape.back()});
}

/// A factor for each loss of the step's part, float32 in their shape, by which the mean over all
/// losses becomes that over the positions that the mask keeps, as in Keras; 0 where it keeps none.
Value mask_weights(StepDraft& step, Value mask, Value losses) {
  Builder& b = step.b;
  const Shape shape = b.shape(losses);
  if (b.shape(mask).elements() != shape.elements()) {
    throw UserError(ErrorKind::config,
                    step.spec.loss_where,
                    fmt::format("the model's output has a mask of {} steps, but {} losses a sample",
                                b.shape(mask)[1],
                                shape.elements() / shape[0]),
                    "a layer without return_sequences, or global_average_pooling1d, ends a mask");
  }
  const Value kept = b.cast(graph::ops::reshape(b, mask, shape), DType::float32);
  const Value number = b.add("Maximum",
                             {step.kept.valid() ? step.kept : graph::ops::reduce(b, "Sum", kept),
                              b.scalar(DType::float32, 1)});
  // The steps of all samples of the batch, kept or not.
  const std::int64_t rows = step.share.ranks > 1 ? step.share.batch : step.share.rows;
  const Value all =
      b.scalar(DType::float32, static_cast<double>(shape.elements() / step.part.rows * rows));
  return b.add("Mul", {kept, b.add("RealDiv", {all, number})}, {}, "mask_weights");
}

/// The weights of samples [rows] as those of their losses, of which each sample has as many.
Value spread_weights(Builder& b, Value weights, Value losses) {
  const Shape shape = b.shape(losses);
  const std::int64_t rows = b.shape(weights)[0], each = shape.elements() / rows;
  if (each > 1) {
    const Value column = graph::ops::reshape(b, weights, {rows, 1});
    weights = b.add("BroadcastTo", {column, b.ints({rows, each})});
  }
  return graph::ops::reshape(b, weights, shape);
}

/// The weight of the class of each row of predictions, float32 [rows].
Value class_weights(Builder& b, const StepSpec& spec, Value labels, const Shape& predictions) {
  const Value classes = class_labels(b, labels, predictions);
  const auto count = static_cast<std::int64_t>(spec.class_weights.size());
  const Value table =
      b.add("Const",
            {},
            {{"dtype", DType::float32}, {"shape", Shape{count}}, {"value", spec.class_weights}});
  return b.add("GatherV2", {table, classes, b.scalar(DType::int32, 0)}, {}, "class_weights");
}

/// The class with the largest of the outputs; of a single one, 1 where it is above one half (above
/// 0 for scores) and else 0.
Value predicted_classes(Builder& b, Value outputs, const Loss& loss) {
  const Value axis = b.scalar(DType::int32, 1);
  const Shape shape = b.shape(outputs);
  if (shape[1] == 1) {
    const Value other = b.fill(DType::float32, shape, loss.from_logits() ? 0 : 0.5);
    outputs = b.add("ConcatV2", {other, outputs, axis});
  }
  return b.add("ArgMax", {outputs, axis}, {}, "predictions");
}

/// The forward pass on the samples of the step's part.
struct BuiltModel {
  Forward forward;
  std::optional<Mixup> mixup;
};

BuiltModel build_model(StepDraft& step) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const int known = step.graph.find("ordinal");
  const Value ordinal = known >= 0 ? Value{known, 0} : b.placeholder("ordinal", DType::int64, {});
  BuiltModel built;
  const Origin mixed = step_origin(Phase::input, "samples are mixed in float32");
  if (has_partners(step)) {
    const ScopeGuard scope(b, mixed, "input");
    built.mixup.emplace(b, *spec.mixup_alpha, ordinal, spec.seed, step.part);
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
                                step.part);
  return built;
}

/// The steps that the mask of the model's output keeps, over all ranks, float32.
Value count_kept(StepDraft& step, Value mask) {
  Builder& b = step.b;
  const ScopeGuard scope(
      b, step_origin(Phase::loss, "masked losses are averaged over the batch"), "kept");
  Value kept = graph::ops::reduce(b, "Sum", b.cast(mask, DType::float32));
  if (step.share.counted == 0) kept = b.scalar(DType::float32, 0);
  if (step.share.ranks > 1) {
    const Value sum = graph::ops::start_all_reduce(b, {kept}, DType::float32, step.share.ranks);
    kept = graph::ops::wait_for_all_reduce(b, sum, {b.type(kept)})[0];
  }
  // A mask has no gradient, whatever it was computed from.
  return b.add("StopGradient", {kept});
}

/// Begins the graph of a step that is computed in several parts with the number of steps that the
/// output's mask keeps in all parts, by which the loss of each is divided. Nothing without a mask.
void count_kept_of_all_parts(StepDraft& step) {
  StepDraft whole(step.spec, step.data, step.share, step.purpose);
  whole.parts = 1;
  whole.part = whole.share;
  const Value mask = build_model(whole).forward.mask;
  if (!mask.valid()) return;
  whole.graph.fetches() = {{"kept", count_kept(whole, mask)}};
  step.graph = passes::prune(whole.graph);
  std::erase_if(step.graph.variables(),
                [&](const graph::Variable& v) { return step.graph.find(v.name) < 0; });
  step.kept = step.graph.fetch("kept");
  step.graph.fetches().clear();
}

}  // namespace

Origin step_origin(Phase phase, std::string reason, std::string layer) {
  return {std::move(layer), phase, std::move(reason), {}};
}

void build_loss(StepDraft& step) {
  Builder& b = step.b;
  Graph& graph = step.graph;
  const StepSpec& spec = step.spec;
  const DataShape& data = step.data;
  const Purpose purpose = step.purpose;
  if (step.parts > 1 && graph.size() == 0) count_kept_of_all_parts(step);
  const std::int64_t batch = step.part.rows;
  auto [forward, mixup] = build_model(step);
  const Value output = forward.outputs.at(0);
  for (const Assignment& state : forward.record.assignments) {
    if (purpose == Purpose::train) break;
    const ScopeGuard scope(b, step_origin(Phase::forward, "states are float32"), "states");
    // A rewrite leaves the node of a fetch as it is, which the layer's own is not to be.
    graph.fetches().emplace_back(graph.node(state.handle.node).name,
                                 b.add("Identity", {state.value}));
  }
  const ScopeGuard loss_scope(
      b, step_origin(Phase::loss, "losses are computed in float32"), "loss");
  Value predictions = b.cast(output, DType::float32);
  graph.fetches().emplace_back("outputs", predictions);
  const Shape sample_output(b.shape(predictions).dims().subspan(1));
  // A class at each position: the loss and the metrics see each position as a sample, as in Keras.
  const bool classes = spec.loss->label_kind() == LabelKind::classes;
  if (classes) predictions = flatten_positions(b, predictions);
  const Shape& shape = b.shape(predictions);
  const bool event = spec.loss->label_kind() == LabelKind::events && shape.elements() == shape[0];
  if (purpose != Purpose::train && shape.rank() == 2 && (shape[1] > 1 || event)) {
    graph.fetches().emplace_back("predictions", predicted_classes(b, predictions, *spec.loss));
  }
  if (purpose == Purpose::predict) return;

  check_labels_fit(
      spec.loss->label_kind(), sample_output, data.label, data.label_dtype, spec.loss_where);
  Value labels = input_rows(step, "labels", data.label_dtype, data.label);
  Value sample_weights;
  if (spec.sample_weights) sample_weights = input_rows(step, "sample_weights", DType::float32, {});
  const Value softmax_logits = scores_behind(b, output, "Softmax");
  const std::int64_t positions = classes ? data.label.elements() : 1;
  if (mixup && positions > 1) {
    throw UserError(ErrorKind::config,
                    spec.loss_where,
                    "data.augment.mixup mixes samples with one label each; these labels are a "
                    "class at each position");
  }
  if (classes) labels = graph::ops::reshape(b, labels, {(mixup ? 2 : 1) * batch * positions});
  LossContext context{b,
                      predictions,
                      classes ? flatten_positions(b, softmax_logits) : softmax_logits,
                      scores_behind(b, output, "Sigmoid"),
                      labels};
  // The loss of each row, by itself and times the weights of its class and sample.
  const bool by_class = purpose == Purpose::train && !spec.class_weights.empty();
  const bool weighted = by_class || spec.sample_weights;
  const auto losses = [&](Value of, Value of_samples) {
    context.labels = of;
    const Value loss = spec.loss->build(context);
    Value product = loss;
    if (by_class) {
      product = b.add("Mul", {product, class_weights(b, spec, of, b.shape(predictions))});
    }
    if (of_samples.valid()) {
      product = b.add("Mul", {product, spread_weights(b, of_samples, loss)});
    }
    return std::pair(loss, product);
  };
  Value per_sample, trained;
  if (mixup) {
    const auto own_and_partner = [&](Value both) {
      return both.valid() ? Mixup::halves(b, both) : std::pair<Value, Value>();
    };
    const auto [own_labels, partner_labels] = own_and_partner(labels);
    const auto [own_weights, partner_weights] = own_and_partner(sample_weights);
    const auto own = losses(own_labels, own_weights);
    const auto partner = losses(partner_labels, partner_weights);
    per_sample = mixup->mean(own.first, partner.first);
    trained = weighted ? mixup->mean(own.second, partner.second) : per_sample;
    labels = mixup->heavier(own_labels, partner_labels);
    if (spec.sample_weights) sample_weights = mixup->heavier(own_weights, partner_weights);
  } else {
    std::tie(per_sample, trained) = losses(labels, sample_weights);
  }
  Value weights;
  if (forward.mask.valid()) {
    if (step.share.ranks > 1 && !step.kept.valid()) step.kept = count_kept(step, forward.mask);
    weights = mask_weights(step, forward.mask, per_sample);
    trained = b.add("Mul", {trained, weights});
    per_sample = weighted ? b.add("Mul", {per_sample, weights}) : trained;
  }
  if (spec.sample_weights) sample_weights = spread_weights(b, sample_weights, per_sample);
  step.loss = graph::ops::reduce(b, "Mean", trained);
  for (const Value& term : forward.record.losses) step.loss = b.add("AddV2", {step.loss, term});
  step.loss = weighted_by_share(b, step.loss, step.part);
  graph.fetches().emplace_back("loss", step.loss);

  {
    const ScopeGuard scope(
        b, step_origin(Phase::metrics, "metrics are computed in float32"), "metrics");
    for (const std::string& name : spec.metrics) {
      const std::vector<std::string> counters = counter_names(name);
      const std::vector<Value> sums = build_metric(
          {b, predictions, labels, per_sample, spec.loss->from_logits(), weights, sample_weights},
          name);
      for (std::size_t i = 0; i < counters.size(); ++i) {
        Value sum = sums[i];
        if (positions > 1) {
          const Value count = b.scalar(DType::float32, static_cast<double>(positions));
          sum = b.add("RealDiv", {sum, count});
        }
        if (step.part.counted == 0) sum = weighted_by_share(b, sum, step.part);
        graph.fetches().emplace_back("metric/" + counters[i], sum);
      }
    }
  }
  step.record = std::move(forward.record);
}

Value weighted_by_share(Builder& b, Value mean, const BatchShare& share) {
  if (share.counted == share.batch) return mean;
  const double weight = static_cast<double>(share.counted) / static_cast<double>(share.batch);
  return b.add("Mul", {mean, b.scalar(b.dtype(mean), weight)});
}

Graph build_step(const StepSpec& spec,
                 const DataShape& data,
                 const BatchShare& batch,
                 Purpose purpose) {
  StepDraft step(spec, data, batch, purpose);
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
