#include "nn/output_loss.h"

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

/// A mask has an element for each loss.
void check_mask(Builder& b, const TrainedOutput& output, Value mask, std::int64_t losses) {
  if (b.shape(mask).elements() == losses) return;
  throw UserError(
      ErrorKind::config,
      output.loss_where,
      fmt::format("the model's output has a mask of {} steps, but {} losses a sample",
                  b.shape(mask)[1],
                  losses / b.shape(mask)[0]),
      "a layer without return_sequences, or global_average_pooling1d, removes the mask");
}

/// 1 for each loss of the microbatch that the mask keeps, else 0; float32 in the losses' shape.
Value kept_losses(Builder& b, const TrainedOutput& output, Value mask, const Shape& shape) {
  check_mask(b, output, mask, shape.elements());
  return b.cast(graph::ops::reshape(b, mask, shape), DType::float32);
}

/// A factor for each loss of the microbatch that turns the mean over all losses into the mean over
/// those that the mask keeps, as in Keras; 0 for masked losses.
Value mask_weights(StepBuilder& step, Value kept_by_all, Value kept) {
  Builder& b = step.b;
  const Shape shape = b.shape(kept);
  const Value number =
      b.add("Maximum",
            {kept_by_all.valid() ? kept_by_all : graph::ops::reduce(b, "Sum", kept),
             b.scalar(DType::float32, 1)});
  // The steps of all samples of the batch, kept or not.
  const std::int64_t rows = step.share.ranks > 1 ? step.share.batch : step.share.samples;
  const Value all = b.scalar(
      DType::float32, static_cast<double>(shape.elements() / step.microbatch.samples * rows));
  return b.add("Mul", {kept, b.add("RealDiv", {all, number})}, {}, "mask_weights");
}

/// Broadcasts weights of samples [rows] to their losses, of this shape.
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

Value count_kept(StepBuilder& step, Value mask) {
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

OutputNodes begin_output(StepBuilder& step, std::size_t i, Value output) {
  Builder& b = step.b;
  OutputNodes nodes{step.spec.outputs[i], i, output, b.cast(output, DType::float32)};
  step.graph.fetches().emplace_back(nodes.spec.named("outputs"), nodes.predictions);
  // The loss and the metrics see each position of an output as a sample, as in Keras.
  nodes.predictions = flatten_positions(b, nodes.predictions);
  const Shape shape = b.shape(nodes.predictions);
  nodes.positions = shape[0] / step.microbatch.samples;
  const Loss& loss = *nodes.spec.loss;
  const bool event = of_events(loss.label_kind()) && shape.elements() == shape[0];
  if (step.purpose != Purpose::train && shape.rank() == 2 && (shape[1] > 1 || event)) {
    step.graph.fetches().emplace_back(nodes.spec.named("predictions"),
                                      predicted_classes(b, nodes.predictions, loss));
  }
  return nodes;
}

void check_labels(const StepBuilder& step, std::vector<OutputNodes>& outputs) {
  const DataShape& data = step.data;
  require(outputs.size() == std::max<std::size_t>(1, data.labels.size()),
          "labels of {} outputs for {}",
          data.labels.size(),
          outputs.size());
  Diagnostics diagnostics;
  for (OutputNodes& nodes : outputs) {
    if (!nodes.spec.is_labelled()) continue;
    nodes.label = data.labels.empty() ? graph::TensorType{data.label_dtype, data.label}
                                      : data.labels[nodes.index];
    // Numbers that are no classes may be beyond int32.
    if (!data.labels.empty() && !nodes.spec.classes()) nodes.label.dtype = DType::float32;
    try {
      check_labels_fit(nodes.spec.loss->label_kind(),
                       sample_of(step.b.shape(nodes.output)),
                       nodes.label.shape,
                       nodes.label.dtype,
                       nodes.spec.loss_where);
    } catch (const UserError& error) {
      for (const Problem& problem : error.problems()) {
        diagnostics.error(problem.where, nodes.spec.in_message() + problem.message, problem.hint);
      }
    }
  }
  diagnostics.throw_if_any();
}

Value output_labels(StepBuilder& step, const OutputNodes& nodes, Value all_labels) {
  Builder& b = step.b;
  Value labels = all_labels;
  if (!step.data.labels.empty()) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < nodes.index; ++i) first += step.data.labels[i].shape.elements();
    const std::int64_t rows = b.shape(labels)[0], values = nodes.label.shape.elements();
    labels = b.add("Slice", {labels, b.ints({0, first}), b.ints({rows, values})});
    // The lists of an automatic rewrite would let labels be rounded to 16 bits.
    step.graph.node(labels.node).preserve = true;
    labels = graph::ops::reshape(b, labels, batched(rows, nodes.label.shape));
    labels = b.cast(labels, nodes.label.dtype);
  }
  if (nodes.spec.loss->label_kind() != LabelKind::classes) return labels;
  return graph::ops::reshape(b, labels, {b.shape(labels)[0] * nodes.positions});
}

Value counted_labels(StepBuilder& step, const OutputNodes& nodes, Value labels) {
  const std::optional<std::int64_t> ignored = nodes.spec.loss->ignored_class();
  if (!ignored) return {};
  Builder& b = step.b;
  const Value number = b.scalar(b.dtype(labels), static_cast<double>(*ignored));
  return b.add("NotEqual", {labels, number}, {}, "kept_labels");
}

Value both_masks(StepBuilder& step, const OutputNodes& nodes, Value mask, Value counted) {
  if (!mask.valid() || !counted.valid()) return mask.valid() ? mask : counted;
  Builder& b = step.b;
  check_mask(b, nodes.spec, mask, b.shape(counted).elements());
  return b.add("LogicalAnd", {graph::ops::reshape(b, mask, b.shape(counted)), counted});
}

void build_output_loss(StepBuilder& step,
                       OutputNodes& nodes,
                       Value all_labels,
                       Value mask,
                       const std::optional<Mixup>& mixup) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const Loss& loss_function = *nodes.spec.loss;
  Value &labels = nodes.labels, &sample_weights = nodes.sample_weights;
  labels = output_labels(step, nodes, all_labels);
  if (loss_function.label_kind() == LabelKind::signs && is_floating(nodes.label.dtype)) {
    labels = b.add("Relu", {labels});
    step.graph.node(labels.node).preserve = true;  // as in output_labels
  }
  const Value softmax_logits = scores_behind(b, nodes.output, "Softmax");
  if (mixup && nodes.positions > 1) {
    throw UserError(ErrorKind::config,
                    nodes.spec.loss_where,
                    "data.augment.mixup mixes samples with one label each; these have one at each "
                    "position");
  }
  if (const Value counted = counted_labels(step, nodes, labels); counted.valid()) {
    mask = both_masks(step, nodes, mask, counted);
    labels = b.add("SelectV2", {counted, labels, b.scalar(b.dtype(labels), 0)});
  }
  LossContext context{b,
                      nodes.predictions,
                      flatten_positions(b, softmax_logits),
                      flatten_positions(b, scores_behind(b, nodes.output, "Sigmoid")),
                      labels};
  // The loss of each row, by itself and times the weights of its class and sample.
  const bool by_class = step.purpose == Purpose::train && !spec.class_weights.empty();
  const bool weighted = by_class || spec.sample_weights;
  const bool has_loss = nodes.spec.has_loss;
  const auto losses = [&](Value of, Value of_samples) {
    if (!has_loss) return std::pair<Value, Value>();
    context.labels = of;
    const Value loss = loss_function.build(context);
    Value product = loss;
    if (by_class) {
      product = b.add("Mul", {product, class_weights(b, spec, of, b.shape(nodes.predictions))});
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
      nodes.per_sample = mixup->mean(own.first, partner.first);
      trained = weighted ? mixup->mean(own.second, partner.second) : nodes.per_sample;
    }
    labels = mixup->heavier(own_labels, partner_labels);
    if (spec.sample_weights) sample_weights = mixup->heavier(own_weights, partner_weights);
  } else {
    std::tie(nodes.per_sample, trained) = losses(labels, sample_weights);
  }
  // Metrics of an output without a loss have a value for each row.
  const Shape each = has_loss ? b.shape(nodes.per_sample) : Shape{b.shape(nodes.predictions)[0]};
  if (mask.valid()) {
    Value& kept = step.kept[nodes.index];
    if (step.share.ranks > 1 && !kept.valid()) kept = count_kept(step, mask);
    nodes.weights = kept_losses(b, nodes.spec, mask, each);
    if (has_loss) trained = b.add("Mul", {trained, mask_weights(step, kept, nodes.weights)});
  }
  if (spec.sample_weights) sample_weights = spread_weights(b, sample_weights, each);
  if (has_loss) nodes.loss = graph::ops::reduce(b, "Mean", trained);
}

void build_metrics(StepBuilder& step, const OutputNodes& nodes) {
  Builder& b = step.b;
  const ScopeGuard scope(
      b, step_origin(Phase::metrics, "metrics are computed in float32"), "metrics");
  for (const std::string& name : nodes.spec.metrics) {
    const std::vector<std::string> counters = counter_names(name, nodes.spec.form);
    const bool is_loss = name == k_loss_metric;
    const std::vector<Value> sums =
        is_loss ? std::vector<Value>{b.add(
                      "Mul",
                      {nodes.loss,
                       b.scalar(DType::float32, static_cast<double>(step.microbatch.samples))})}
                : build_metric({b,
                                nodes.predictions,
                                nodes.labels,
                                nodes.per_sample,
                                nodes.spec.loss->from_logits(),
                                nodes.weights,
                                nodes.sample_weights},
                               name);
    for (std::size_t i = 0; i < counters.size(); ++i) {
      Value sum = sums[i];
      if (nodes.positions > 1 && !is_loss) {
        const Value count = b.scalar(DType::float32, static_cast<double>(nodes.positions));
        sum = b.add("RealDiv", {sum, count});
      }
      if (step.microbatch.weighted_samples == 0) sum = weighted_by_share(b, sum, step.microbatch);
      step.graph.fetches().emplace_back(
          "metric/" + config::metric_name(nodes.spec.key, counters[i]), sum);
    }
  }
}

}  // namespace halfstep::nn
