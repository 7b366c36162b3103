#include "nn/metric_counts.h"

#include <utility>

#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

/// 1 for the outputs above one half (above 0 for scores), else 0.
Value positives(Builder& b, Value predictions, bool from_logits) {
  const Value threshold = b.scalar(DType::float32, from_logits ? 0.0 : 0.5);
  return b.cast(b.add("Greater", {predictions, threshold}), DType::float32);
}

bool has_classes(const Shape& outputs) { return outputs.rank() == 2 && outputs[1] > 1; }

/// The class with the largest output of each row, int32 [rows].
Value winners(Builder& b, Value predictions) {
  return b.cast(b.add("ArgMax", {predictions, b.scalar(DType::int32, 1)}), DType::int32);
}

/// The elements of a vector as scalars, after those of `to`.
void append_elements(Builder& b, Value vector, std::vector<Value>& to) {
  const std::int64_t count = b.shape(vector)[0];
  const Value split = b.add("Split", {b.scalar(DType::int32, 0), vector}, {{"num_split", count}});
  for (int i = 0; i < static_cast<int>(count); ++i) {
    to.push_back(graph::ops::reshape(b, {split.node, i}, Shape{}));
  }
}

}  // namespace

Value hits(const MetricContext& c) {
  Builder& b = c.b;
  const Shape& shape = b.shape(c.predictions);
  if (has_classes(shape)) {
    return b.add("Equal", {winners(b, c.predictions), class_labels(b, c.labels, shape)});
  }
  return b.add("Equal",
               {positives(b, c.predictions, c.from_logits), dense_targets(b, c.labels, shape)});
}

std::vector<Value> count_positives(const MetricContext& c,
                                   std::span<const std::string_view> counters) {
  Builder& b = c.b;
  const Value positive = positives(b, c.predictions, c.from_logits);
  const Value target = dense_targets(b, c.labels, b.shape(c.predictions));
  const auto opposite = [&](Value of) { return b.add("Sub", {b.scalar(DType::float32, 1), of}); };
  std::vector<Value> sums;
  for (const std::string_view counter : counters) {
    const Value output = counter == k_false_negatives ? opposite(positive) : positive;
    const Value label = counter == k_false_positives ? opposite(target) : target;
    Value counted = b.add("Mul", {output, label});
    if (c.weights.valid()) {
      const std::vector<std::int64_t> outputs{-1};
      counted = b.add("Mul", {graph::ops::reduce(b, "Sum", counted, outputs), c.weights});
    }
    sums.push_back(graph::ops::reduce(b, "Sum", counted));
  }
  return sums;
}

std::vector<Value> count_by_threshold(const MetricContext& c) {
  Builder& b = c.b;
  const Shape shape = b.shape(c.predictions);
  const Shape column{shape.elements(), 1};  // compared with [1, thresholds]
  const Value outputs = c.from_logits ? b.add("Sigmoid", {c.predictions}) : c.predictions;
  std::vector<double> thresholds(k_thresholds);
  for (std::size_t i = 0; i < k_thresholds; ++i) {
    thresholds[i] = static_cast<double>(i) / (k_thresholds - 1);
  }
  // As in Keras, every output is above the first one and below the last one.
  thresholds.front() = -1e-7;
  thresholds.back() = 1 + 1e-7;
  const Value steps = b.floats({1, std::ssize(thresholds)}, thresholds);
  const Value above =
      b.cast(b.add("Greater", {graph::ops::reshape(b, outputs, column), steps}), DType::float32);
  const Value target = dense_targets(b, c.labels, shape);
  std::vector<Value> sums;
  for (const bool label : {false, true}) {
    Value counted = label ? target : b.add("Sub", {b.scalar(DType::float32, 1), target});
    if (c.weights.valid()) {
      Shape rows = shape;
      for (std::size_t axis = 1; axis < rows.rank(); ++axis) rows = rows.with(axis, 1);
      counted = b.add("Mul", {counted, graph::ops::reshape(b, c.weights, rows)});
    }
    const Value each = b.add("Mul", {above, graph::ops::reshape(b, counted, column)});
    const Value of_threshold = graph::ops::reduce(b, "Sum", each, std::vector<std::int64_t>{0});
    append_elements(b, of_threshold, sums);
  }
  return sums;
}

std::vector<Value> count_by_class(const MetricContext& c) {
  Builder& b = c.b;
  const Shape& shape = b.shape(c.predictions);
  const std::int64_t rows = shape[0];
  const bool classes = has_classes(shape);
  const Value outputs =
      classes ? winners(b, c.predictions)
              : graph::ops::reshape(
                    b, b.cast(positives(b, c.predictions, c.from_logits), DType::int32), {rows});
  const Value labels = class_labels(b, c.labels, shape);
  const Value count = b.scalar(DType::int32, static_cast<double>(classes ? shape[1] : 2));
  const Value each = c.weights.valid() ? graph::ops::reshape(b, c.weights, {rows})
                                       : b.fill(DType::float32, {rows}, 1);
  const auto by = [&](Value of, Value ids) {
    return b.add("UnsortedSegmentSum", {of, ids, count});
  };
  const Value equal = b.cast(b.add("Equal", {outputs, labels}), DType::float32);
  const Value both = by(b.add("Mul", {each, equal}), labels);
  const Value one = b.add("Sub", {b.add("AddV2", {by(each, outputs), by(each, labels)}), both});
  std::vector<Value> sums;
  append_elements(b, both, sums);
  append_elements(b, one, sums);
  return sums;
}

}  // namespace halfstep::nn
