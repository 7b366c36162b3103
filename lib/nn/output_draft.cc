#include "nn/output_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "nn/layers/samples.h"
#include "nn/metric.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Phase;
using graph::ScopeGuard;
using graph::Value;

/// The scores that a final activation was applied to, found through casts, in float32.
Value scores_behind(Builder& b, Value output, std::string_view activation) {
  const graph::Node* node = &b.graph().node(output.node);
  while (node->is(graph::ops::k_cast)) node = &b.graph().node(node->inputs[0].node);
  return node->op == activation ? b.cast(node->inputs[0], DType::float32) : Value{};
}

/// Outputs with one row for each position of each sample; those of one position stay as they are.
Value flatten_positions(Builder& b, Value outputs) {
  if (!outputs.valid() || b.shape(outputs).rank() <= 2) return outputs;
  const Shape& shape = b.shape(outputs);
  return graph::ops::reshape(b, outputs, {shape.elements() / shape.back(), shape.back()});
}

/// A mask keeps or leaves out each of the losses.
void check_mask(Builder& b, const TrainedOutput& output, Value mask, std::int64_t losses) {
  if (b.shape(mask).elements() == losses) return;
  throw UserError(ErrorKind::config,
                  output.loss_where,
                  fmt::format("the model's output has a mask of {} steps, but {} losses a sample",
                              b.shape(mask)[1],
                              losses / b.shape(mask)[0]),
                  "a layer without return_sequences, or global_average_pooling1d, ends a mask");
}

/// 1 for each loss of the step's part that the mask keeps, else 0, float32 in the losses' shape.
Value kept_losses(Builder& b, const TrainedOutput& output, Value mask, const Shape& shape) {
  check_mask(b, output, mask, shape.elements());
  return b.cast(graph::ops::reshape(b, mask, shape), DType::float32);
}

/// A factor for each loss of the step's part by which the mean over all losses becomes that over
/// those that are kept, as in Keras; 0 where none is.
Value mask_weights(StepDraft& step, Value kept_by_all, Value kept) {
  Builder& b = step.b;
  const Shape shape = b.shape(kept);
  const Value number =
      b.add("Maximum",
            {kept_by_all.valid() ? kept_by_all : graph::ops::reduce(b, "Sum", kept),
             b.scalar(DType::float32, 1)});
  // The steps of all samples of the batch, kept or not.
  const std::int64_t rows = step.share.ranks > 1 ? step.share.batch : step.share.samples;
  const Value all =
      b.scalar(DType::float32, static_cast<double>(shape.elements() / step.part.samples * rows));
  return b.add("Mul", {kept, b.add("RealDiv", {all, number})}, {}, "mask_weights");
}

/// The weights of samples [rows] as those of their losses of this shape, of which each sample has
/// as many.
Value spread_weights(Builder& b, Value weights, const Shape& shape) {
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
  const Value table = b.floats({std::ssize(spec.class_weights)}, spec.class_weights);
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

}  // namespace

Value count_kept(StepDraft& step, Value mask) {
  Builder& b = step.b;
  const ScopeGuard scope(
      b, step_origin(Phase::loss, "masked losses are averaged over the batch"), "kept");
  Value kept = graph::ops::reduce(b, "Sum", b.cast(mask, DType::float32));
  if (step.share.weighted_samples == 0) kept = b.scalar(DType::float32, 0);
  if (step.share.ranks > 1) {
    const Value sum = graph::ops::start_all_reduce(b, {kept}, DType::float32, step.share.ranks);
    kept = graph::ops::wait_for_all_reduce(b, sum, {b.type(kept)})[0];
  }
  // A mask has no gradient, whatever it was computed from.
  return b.add("StopGradient", {kept});
}

OutputDraft begin_output(StepDraft& step, std::size_t i, Value output) {
  Builder& b = step.b;
  OutputDraft draft{step.spec.outputs[i], i, output, b.cast(output, DType::float32)};
  step.graph.fetches().emplace_back(draft.spec.named("outputs"), draft.predictions);
  // The loss and the metrics see each position of an output as a sample, as in Keras.
  draft.predictions = flatten_positions(b, draft.predictions);
  const Shape shape = b.shape(draft.predictions);
  draft.positions = shape[0] / step.part.samples;
  const Loss& loss = *draft.spec.loss;
  const bool event = of_events(loss.label_kind()) && shape.elements() == shape[0];
  if (step.purpose != Purpose::train && shape.rank() == 2 && (shape[1] > 1 || event)) {
    step.graph.fetches().emplace_back(draft.spec.named("predictions"),
                                      predicted_classes(b, draft.predictions, loss));
  }
  return draft;
}

void check_labels(const StepDraft& step, std::vector<OutputDraft>& outputs) {
  const DataShape& data = step.data;
  require(outputs.size() == std::max<std::size_t>(1, data.labels.size()),
          "labels of {} outputs for {}",
          data.labels.size(),
          outputs.size());
  Diagnostics diagnostics;
  for (OutputDraft& draft : outputs) {
    if (!draft.spec.is_labelled()) continue;
    draft.label = data.labels.empty() ? graph::TensorType{data.label_dtype, data.label}
                                      : data.labels[draft.index];
    // Numbers that are no classes may be beyond int32.
    if (!data.labels.empty() && !draft.spec.classes()) draft.label.dtype = DType::float32;
    try {
      check_labels_fit(draft.spec.loss->label_kind(),
                       sample_of(step.b.shape(draft.output)),
                       draft.label.shape,
                       draft.label.dtype,
                       draft.spec.loss_where);
    } catch (const UserError& error) {
      for (const Problem& problem : error.problems()) {
        diagnostics.error(problem.where, draft.spec.in_message() + problem.message, problem.hint);
      }
    }
  }
  diagnostics.throw_if_any();
}

Value output_labels(StepDraft& step, const OutputDraft& draft, Value all_labels) {
  Builder& b = step.b;
  Value labels = all_labels;
  if (!step.data.labels.empty()) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < draft.index; ++i) first += step.data.labels[i].shape.elements();
    const std::int64_t rows = b.shape(labels)[0], values = draft.label.shape.elements();
    labels = b.add("Slice", {labels, b.ints({0, first}), b.ints({rows, values})});
    // The lists of an automatic rewrite would let labels be rounded to 16 bits.
    step.graph.node(labels.node).preserve = true;
    labels = graph::ops::reshape(b, labels, batched(rows, draft.label.shape));
    labels = b.cast(labels, draft.label.dtype);
  }
  if (draft.spec.loss->label_kind() != LabelKind::classes) return labels;
  return graph::ops::reshape(b, labels, {b.shape(labels)[0] * draft.positions});
}

Value counted_labels(StepDraft& step, const OutputDraft& draft, Value labels) {
  const std::optional<std::int64_t> ignored = draft.spec.loss->ignored_class();
  if (!ignored) return {};
  Builder& b = step.b;
  const Value number = b.scalar(b.dtype(labels), static_cast<double>(*ignored));
  return b.add("NotEqual", {labels, number}, {}, "kept_labels");
}

Value both_masks(StepDraft& step, const OutputDraft& draft, Value mask, Value counted) {
  if (!mask.valid() || !counted.valid()) return mask.valid() ? mask : counted;
  Builder& b = step.b;
  check_mask(b, draft.spec, mask, b.shape(counted).elements());
  return b.add("LogicalAnd", {graph::ops::reshape(b, mask, b.shape(counted)), counted});
}

void build_output_loss(StepDraft& step,
                       OutputDraft& draft,
                       Value all_labels,
                       Value mask,
                       const std::optional<Mixup>& mixup) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const Loss& loss_function = *draft.spec.loss;
  Value &labels = draft.labels, &sample_weights = draft.sample_weights;
  labels = output_labels(step, draft, all_labels);
  if (loss_function.label_kind() == LabelKind::signs && is_floating(draft.label.dtype)) {
    labels = b.add("Relu", {labels});
    step.graph.node(labels.node).preserve = true;  // as in output_labels
  }
  const Value softmax_logits = scores_behind(b, draft.output, "Softmax");
  if (mixup && draft.positions > 1) {
    throw UserError(ErrorKind::config,
                    draft.spec.loss_where,
                    "data.augment.mixup mixes samples with one label each; these have one at each "
                    "position");
  }
  if (const Value counted = counted_labels(step, draft, labels); counted.valid()) {
    mask = both_masks(step, draft, mask, counted);
    labels = b.add("SelectV2", {counted, labels, b.scalar(b.dtype(labels), 0)});
  }
  LossContext context{b,
                      draft.predictions,
                      flatten_positions(b, softmax_logits),
                      flatten_positions(b, scores_behind(b, draft.output, "Sigmoid")),
                      labels};
  // The loss of each row, by itself and times the weights of its class and sample.
  const bool by_class = step.purpose == Purpose::train && !spec.class_weights.empty();
  const bool weighted = by_class || spec.sample_weights;
  const bool has_loss = draft.spec.has_loss;
  const auto losses = [&](Value of, Value of_samples) {
    if (!has_loss) return std::pair<Value, Value>();
    context.labels = of;
    const Value loss = loss_function.build(context);
    Value product = loss;
    if (by_class) {
      product = b.add("Mul", {product, class_weights(b, spec, of, b.shape(draft.predictions))});
    }
    if (of_samples.valid()) {
      product = b.add("Mul", {product, spread_weights(b, of_samples, b.shape(loss))});
    }
    return std::pair(loss, product);
  };
  Value trained;
  if (mixup) {
    const auto own_and_partner = [&](Value both) {
      return both.valid() ? Mixup::halves(b, both) : std::pair<Value, Value>();
    };
    const auto [own_labels, partner_labels] = own_and_partner(labels);
    const auto [own_weights, partner_weights] = own_and_partner(sample_weights);
    const auto own = losses(own_labels, own_weights);
    const auto partner = losses(partner_labels, partner_weights);
    if (has_loss) {
      draft.per_sample = mixup->mean(own.first, partner.first);
      trained = weighted ? mixup->mean(own.second, partner.second) : draft.per_sample;
    }
    labels = mixup->heavier(own_labels, partner_labels);
    if (spec.sample_weights) sample_weights = mixup->heavier(own_weights, partner_weights);
  } else {
    std::tie(draft.per_sample, trained) = losses(labels, sample_weights);
  }
  // Metrics of an output without a loss have a value for each row.
  const Shape each = has_loss ? b.shape(draft.per_sample) : Shape{b.shape(draft.predictions)[0]};
  if (mask.valid()) {
    Value& kept = step.kept[draft.index];
    if (step.share.ranks > 1 && !kept.valid()) kept = count_kept(step, mask);
    draft.weights = kept_losses(b, draft.spec, mask, each);
    if (has_loss) trained = b.add("Mul", {trained, mask_weights(step, kept, draft.weights)});
  }
  if (spec.sample_weights) sample_weights = spread_weights(b, sample_weights, each);
  if (has_loss) draft.loss = graph::ops::reduce(b, "Mean", trained);
}

void build_metrics(StepDraft& step, const OutputDraft& draft) {
  Builder& b = step.b;
  const ScopeGuard scope(
      b, step_origin(Phase::metrics, "metrics are computed in float32"), "metrics");
  for (const std::string& name : draft.spec.metrics) {
    const std::vector<std::string> counters = counter_names(name, draft.spec.form);
    const bool is_loss = name == k_loss_metric;
    const std::vector<Value> sums =
        is_loss
            ? std::vector<Value>{b.add(
                  "Mul",
                  {draft.loss, b.scalar(DType::float32, static_cast<double>(step.part.samples))})}
            : build_metric({b,
                            draft.predictions,
                            draft.labels,
                            draft.per_sample,
                            draft.spec.loss->from_logits(),
                            draft.weights,
                            draft.sample_weights},
                           name);
    for (std::size_t i = 0; i < counters.size(); ++i) {
      Value sum = sums[i];
      if (draft.positions > 1 && !is_loss) {
        const Value count = b.scalar(DType::float32, static_cast<double>(draft.positions));
        sum = b.add("RealDiv", {sum, count});
      }
      if (step.part.weighted_samples == 0) sum = weighted_by_share(b, sum, step.part);
      step.graph.fetches().emplace_back(
          "metric/" + config::metric_name(draft.spec.key, counters[i]), sum);
    }
  }
}

}  // namespace halfstep::nn
