#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include "graph/ops/ops.h"
#include "nn/layers/image.h"
#include "nn/layers/random_elements.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// The score of a masked step: far below any other, and finite also in float16, in which the
/// rewrite computes the softmax; of scores that are all infinite the softmax is NaN.
constexpr double k_masked = -6e4;

Value batch_matmul(graph::Builder& b, Value x, Value y, bool transposed) {
  return b.add("BatchMatMulV2", {x, y}, {{"adj_y", transposed}});
}

Value transposed(graph::Builder& b, Value x, std::vector<std::int64_t> order) {
  return b.add("Transpose", {x, b.ints(std::move(order))});
}

/// softmax(scores) along the last axis, in float32; with a causal mask a step sees none after it,
/// and of the values those alone that `keys` keeps, where it is valid.
/// Shapes: scores [batch, ..., query steps, value steps], keys [batch, value steps].
Value attention_weights(LayerContext& c, Value scores, bool causal, Value keys) {
  graph::Builder& b = c.b;
  const DType dtype = b.dtype(scores);
  const Shape shape = b.shape(scores);
  const std::int64_t of_query = shape[shape.rank() - 2], of_value = shape.back();
  const Explain explain(b, "float32: softmax of attention scores");
  Value x = is_half(dtype) ? b.cast(scores, DType::float32) : scores;
  if (causal) {
    const auto steps = [&](std::int64_t count, const Shape& as) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(count));
      std::iota(all.begin(), all.end(), 0);
      return graph::ops::reshape(b, b.ints(all), as);
    };
    const Value seen =
        b.add("GreaterEqual", {steps(of_query, {of_query, 1}), steps(of_value, {1, of_value})});
    x = b.add("SelectV2", {seen, x, b.scalar(b.dtype(x), k_masked)});
  }
  if (!keys.valid()) return b.cast(b.add("Softmax", {x}), dtype);
  std::vector<std::int64_t> extents(shape.rank(), 1);
  extents.front() = shape[0];
  extents.back() = of_value;
  const Value kept = graph::ops::reshape(b, keys, Shape(extents));
  const Value masked = b.add("SelectV2", {kept, x, b.scalar(b.dtype(x), k_masked)});
  // Without a key that is kept the weights are 0 instead of equal.
  const Value weights =
      b.add("SelectV2", {kept, b.add("Softmax", {masked}), b.scalar(b.dtype(x), 0)});
  return b.cast(weights, dtype);
}

/// The inputs of an attention layer: query, value and, where it is another one, key.
struct AttentionInputs {
  Value query, value, key;
  Value mask;  ///< of value and key; not valid where neither has one

  /// The output has the mask of the query.
  AttentionInputs(LayerContext& c, std::span<const Value> x)
      : query(x[0]),
        value(x.size() > 1 ? x[1] : x[0]),
        key(x.size() > 2 ? x[2] : value),
        mask(c.mask_of(x.size() > 1 ? 1 : 0)) {
    const Value of_key = c.mask_of(2);
    if (mask.valid() && of_key.valid()) {
      mask = c.b.add("LogicalAnd", {mask, of_key});
    } else if (of_key.valid()) {
      mask = of_key;
    }
    c.mask = c.mask_of(0);
    for (const Value each : {query, value, key}) sequence_shape(c, each);
    const std::int64_t values = c.b.shape(value)[1], keys = c.b.shape(key)[1];
    if (values != keys) c.fail(fmt::format("value has {} steps and key {}", values, keys));
  }
};

void dropout_field(config::Fields& f, double& rate) {
  f.field("dropout",
          rate,
          {.doc = "Probability with which a weight is zeroed in training. [fraction]",
           .min = 0,
           .max = 1});
}

void scores_field(config::Fields& f, bool& return_attention_scores) {
  f.field("return_attention_scores",
          return_attention_scores,
          {.doc = "Whether the weights of the values are output 1, `name:1` in the `from` of other "
                  "nodes; they are then stored in memory."});
}

void causal_field(config::Fields& f, bool& use_causal_mask) {
  f.field("use_causal_mask",
          use_causal_mask,
          {.doc = "Whether a step of the query attends to the steps up to its own only."});
}

/// Source: Luong, Pham and Manning 2015 (dot scores).
struct Attention : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::used;
  bool use_scale = false;
  bool use_causal_mask = false;
  bool return_attention_scores = false;

  Attention() { rate = 0; }

  void fields(config::Fields& f) {
    f.field(
        "use_scale", use_scale, {.doc = "Whether the scores are multiplied by a trained number."});
    dropout_field(f, rate);
    causal_field(f, use_causal_mask);
    scores_field(f, return_attention_scores);
    seed_field(f);
  }

  std::size_t outputs() const { return return_attention_scores ? 2 : 1; }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const AttentionInputs in(c, x);
    if (b.shape(in.query)[2] != b.shape(in.key)[2]) {
      c.fail(fmt::format(
          "query has {} channels and key {}", b.shape(in.query)[2], b.shape(in.key)[2]));
    }
    Value scores = batch_matmul(b, in.query, in.key, true);
    if (use_scale) {
      scores = b.add("Mul", {scores, c.weight("scale", Shape{}, InitializerSpec("ones"))});
    }
    Value weights = attention_weights(c, scores, use_causal_mask, in.mask);
    weights = drop(c, weights, b.shape(weights));
    if (return_attention_scores) c.further.push_back({weights});
    const Value y = batch_matmul(b, weights, in.value, false);
    if (!c.mask.valid()) return y;
    return b.add("SelectV2", {c.spread(c.mask, 3), y, b.scalar(b.dtype(y), 0)});
  }
};

/// Source: Vaswani et al. 2017.
/// Shapes: kernels [channels, num_heads, width], that of the output [num_heads, value_dim, out].
struct MultiHeadAttention : RandomElements {
  static constexpr MaskUse k_masks = MaskUse::used;
  std::int64_t num_heads = 0;
  std::int64_t key_dim = 0;
  std::optional<std::int64_t> value_dim;
  bool use_bias = true;
  std::optional<std::int64_t> output_shape;
  bool use_causal_mask = false;
  bool return_attention_scores = false;
  InitializerSpec kernel_initializer{"glorot_uniform"};
  InitializerSpec bias_initializer{"zeros"};
  std::optional<RegularizerSpec> kernel_regularizer;
  std::optional<RegularizerSpec> bias_regularizer;

  MultiHeadAttention() { rate = 0; }

  void fields(config::Fields& f) {
    const auto width = [&](std::string_view name, auto& value, std::string doc, bool required) {
      f.field(
          name, value, {.doc = std::move(doc), .required = required, .min = 1, .max = k_max_units});
    };
    width("num_heads", num_heads, "Number of heads.", true);
    width("key_dim", key_dim, "Width of a head's query and key. [values]", true);
    width("value_dim", value_dim, "Width of a head's value; null: key_dim. [values]", false);
    dropout_field(f, rate);
    f.field("use_bias", use_bias, {.doc = "Whether the four projections have a bias."});
    width("output_shape",
          output_shape,
          "Channels of the output; null: those of the query. [channels]",
          false);
    causal_field(f, use_causal_mask);
    scores_field(f, return_attention_scores);
    initializer_field(
        f, "kernel_initializer", kernel_initializer, "Initial values of the kernels.");
    initializer_field(f, "bias_initializer", bias_initializer, "Initial values of the biases.");
    regularizer_field(f, "kernel_regularizer", kernel_regularizer, "Penalty on the kernels.");
    regularizer_field(f, "bias_regularizer", bias_regularizer, "Penalty on the biases.");
    seed_field(f);
  }

  void check(Diagnostics& diagnostics, const Where&) const {
    nn::check(kernel_initializer, diagnostics);
    nn::check(bias_initializer, diagnostics);
  }

  std::size_t outputs() const { return return_attention_scores ? 2 : 1; }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const AttentionInputs in(c, x);
    const std::int64_t of_value = value_dim.value_or(key_dim);
    const Value query = heads(c, "query", in.query, key_dim);
    const Value key = heads(c, "key", in.key, key_dim);
    const Value value = heads(c, "value", in.value, of_value);
    // The query is scaled, not the scores, so that dot products stay small in float16.
    const double factor = 1 / std::sqrt(static_cast<double>(key_dim));
    const Value scaled = b.add("Mul", {query, b.scalar(b.dtype(query), factor)});
    const Value weights =
        attention_weights(c, batch_matmul(b, scaled, key, true), use_causal_mask, in.mask);
    // As in Keras, the output has the weights before the dropout.
    if (return_attention_scores) c.further.push_back({weights});
    const Value seen = batch_matmul(b, drop(c, weights, b.shape(weights)), value, false);

    const Shape in_shape = b.shape(in.query);
    const std::int64_t out = output_shape.value_or(in_shape[2]);
    const std::int64_t joined = num_heads * of_value;
    const Value rows = graph::ops::reshape(
        b, transposed(b, seen, {0, 2, 1, 3}), {in_shape[0] * in_shape[1], joined});
    const Value kernel = c.weight("attention_output/kernel",
                                  {num_heads, of_value, out},
                                  kernel_initializer,
                                  kernel_regularizer);
    Value y = b.add("MatMul", {rows, graph::ops::reshape(b, kernel, {joined, out})});
    if (use_bias) {
      y = b.add("BiasAdd",
                {y, c.weight("attention_output/bias", {out}, bias_initializer, bias_regularizer)});
    }
    return graph::ops::reshape(b, y, {in_shape[0], in_shape[1], out});
  }

 private:
  /// The projection of all heads, [batch, num_heads, steps, width].
  Value heads(LayerContext& c, std::string_view name, Value x, std::int64_t width) const {
    graph::Builder& b = c.b;
    const Shape in = b.shape(x);
    const std::int64_t all = num_heads * width;
    const Value kernel = c.weight(fmt::format("{}/kernel", name),
                                  {in[2], num_heads, width},
                                  kernel_initializer,
                                  kernel_regularizer);
    Value y = b.add("MatMul",
                    {graph::ops::reshape(b, x, {in[0] * in[1], in[2]}),
                     graph::ops::reshape(b, kernel, {in[2], all})});
    if (use_bias) {
      const Value bias = c.weight(
          fmt::format("{}/bias", name), {num_heads, width}, bias_initializer, bias_regularizer);
      y = b.add("BiasAdd", {y, graph::ops::reshape(b, bias, {all})});
    }
    return transposed(b, graph::ops::reshape(b, y, {in[0], in[1], num_heads, width}), {0, 2, 1, 3});
  }
};

constexpr std::string_view k_float32_softmax =
    "Masked scores and their softmax are float32 under every policy, where Keras computes them in "
    "the compute dtype; matmuls accumulate in float32. Masked steps of the value have the weight "
    "0; the output has the mask of the query. A CPU computes scores that fill most of a 32 x 32 "
    "block in blocks, and a GPU those of "
    "heads of up to 128 channels where matmuls would not be faster (pass fuse_attention): memory "
    "grows with the number of steps, not with its square, scores are not rounded to 16 bits, and a "
    "step that sees padding alone, of a causal mask and another one, has the result 0.";

}  // namespace

extern const LayerDefs k_attention_layers{
    layer_def<Attention>(
        "attention",
        "y = softmax(query key^T) value, of the inputs query, value and, unless it is the value, "
        "key "
        "(Luong, Pham and Manning 2015).",
        {.max_inputs = 3,
         .example_input = "[4, 6]",
         .shapes =
             "query [batch, steps, channels], value and key [batch, value steps, channels], y "
             "[batch, steps, channels of the value]; output 1 [batch, steps, value steps]",
         .numerics = k_float32_softmax}),
    layer_def<MultiHeadAttention>(
        "multi_head_attention",
        "In each head softmax(q k^T / sqrt(key_dim)) v, with q, k and v projections of the inputs "
        "query, key and value; the heads are joined by another projection. One input is all three, "
        "two "
        "are query and value (Vaswani et al. 2017).",
        {.max_inputs = 3,
         .example = "{num_heads: 2, key_dim: 3}",
         .example_input = "[4, 6]",
         .shapes = "query [batch, steps, channels], value and key [batch, value steps, channels], "
                   "y [batch, "
                   "steps, output_shape], output 1 [batch, num_heads, steps, value steps]; kernels "
                   "[channels, num_heads, width], that of the output [num_heads, value_dim, "
                   "output_shape]",
         .numerics = k_float32_softmax}),
};

}  // namespace halfstep::nn
