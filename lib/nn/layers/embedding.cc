#include <fmt/format.h>

#include "graph/ops/ops.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Rows of a table. Dtypes: rows are taken in the variable dtype and cast to the compute dtype, as
/// Keras does; the gradient is summed over equal indices in float32 or more.
/// Shapes: x [batch, ...] of indices in any dtype, y [batch, ..., output_dim].
struct Embedding {
  static constexpr MaskUse k_masks = MaskUse::used;
  std::int64_t input_dim = 0;
  std::int64_t output_dim = 0;
  bool mask_zero = false;
  InitializerSpec embeddings_initializer{"random_uniform"};
  std::optional<RegularizerSpec> embeddings_regularizer;

  void fields(config::Fields& f) {
    f.field("input_dim",
            input_dim,
            {.doc = "Rows of the table: indices are below it. [rows]",
             .required = true,
             .min = 1,
             .max = k_max_units});
    f.field("output_dim",
            output_dim,
            {.doc = "Values of a row. [values]", .required = true, .min = 1, .max = k_max_units});
    initializer_field(
        f, "embeddings_initializer", embeddings_initializer, "Initial values of the table.");
    regularizer_field(f, "embeddings_regularizer", embeddings_regularizer, "Penalty on the table.");
    f.field("mask_zero",
            mask_zero,
            {.doc = "Whether index 0 is padding: later layers and the loss skip its steps. Tokens "
                    "then have the indices from 1 on."});
  }
  void check(Diagnostics& diagnostics, const Where&) const {
    nn::check(embeddings_initializer, diagnostics);
  }
  std::optional<std::int64_t> index_limit() const { return input_dim; }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    if (c.mask_of(0).valid()) c.fail("does not support masks");
    const Value indices = b.cast(b.add("StopGradient", {x[0]}), DType::int32);
    if (mask_zero) {
      if (b.shape(indices).rank() != 2) {
        c.fail(fmt::format("mask_zero needs sequences of indices [steps], got samples [{}]",
                           fmt::join(b.shape(indices).dims().subspan(1), ", ")));
      }
      c.mask = b.add("NotEqual", {indices, b.scalar(DType::int32, 0)}, {}, "mask");
    }
    const Value table = c.stored_weight(
        "embeddings", {input_dim, output_dim}, embeddings_initializer, embeddings_regularizer);
    return b.cast(b.add("GatherV2", {table, indices, b.scalar(DType::int32, 0)}), c.compute());
  }
};

/// y = x, with a mask.
struct Masking {
  static constexpr MaskUse k_masks = MaskUse::used;
  double mask_value = 0;

  void fields(config::Fields& f) {
    f.field("mask_value", mask_value, {.doc = "Value of all elements of a step that is padding."});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const DType dtype = b.dtype(x[0]);
    const std::size_t rank = sequence_shape(c, x[0]).rank();
    const Value differs = b.add("NotEqual", {x[0], b.scalar(dtype, mask_value)});
    c.mask = b.add("Any", {differs, b.ints({-1})}, {}, "mask");
    return b.add("SelectV2", {c.spread(c.mask, rank), x[0], b.scalar(dtype, 0)});
  }
};

/// A row for each step, the same in each sample. Source: Keras Hub, PositionEmbedding.
struct PositionEmbedding {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::int64_t sequence_length = 0;
  InitializerSpec initializer{"glorot_uniform"};

  void fields(config::Fields& f) {
    f.field("sequence_length",
            sequence_length,
            {.doc = "Steps of the longest sequence. [steps]",
             .required = true,
             .min = 1,
             .max = k_max_window});
    initializer_field(f, "initializer", initializer, "Initial values of the rows.");
  }
  void check(Diagnostics& diagnostics, const Where&) const { nn::check(initializer, diagnostics); }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const Shape in = sequence_shape(c, x[0]);
    if (in[1] > sequence_length) {
      c.fail(fmt::format("its input has {} steps, sequence_length is {}", in[1], sequence_length));
    }
    Value rows = c.weight("embeddings", {sequence_length, in[2]}, initializer);
    if (in[1] < sequence_length) {
      const std::vector<std::int64_t> begin{0, 0}, size{in[1], in[2]};
      rows = b.add("Slice", {rows, b.ints(begin), b.ints(size)});
    }
    const std::vector<std::int64_t> extents(in.begin(), in.end());
    return b.add("BroadcastTo", {rows, b.ints(extents)});
  }
};

}  // namespace

extern const LayerDefs k_embedding_layers{
    layer_def<Embedding>(
        "embedding",
        "The row of a table that each index names, such as the vector of a word.",
        {.example = "{input_dim: 5, output_dim: 3}",
         .example_input = "[4]",
         .shapes =
             "x [batch, ...], whole numbers from 0 to input_dim - 1; y [batch, ..., output_dim], "
             "embeddings [input_dim, output_dim]",
         .numerics =
             "Indices are never cast to 16 bits. Samples with an index out of range are "
             "refused when they come from the data; elsewhere such an index gives zeros. The "
             "rows are taken from the stored weight and cast to the compute dtype; their "
             "gradient is summed in float32 at least, in the order of the samples."}),
    layer_def<Masking>(
        "masking",
        "y = x, with a mask that excludes the steps whose elements all equal mask_value. As in "
        "Keras, recurrent layers keep their state at masked steps, global_average_pooling1d and "
        "attention skip them, merging layers combine the masks of their inputs, layers that "
        "compute each step by itself pass the mask on, and loss and metrics are over the unmasked "
        "steps. After a mask, a layer that does not support masks is an error.",
        {.example_input = "[6, 3]",
         .shapes = "x [batch, steps, channels], y as x, with zeros at masked steps"}),
    layer_def<PositionEmbedding>(
        "position_embedding",
        "A trained vector for each step of a sequence, which `add` adds to its input.",
        {.example = "{sequence_length: 6}",
         .example_input = "[6, 3]",
         .shapes =
             "x [batch, steps, channels], of which the shape alone counts; y as x, embeddings "
             "[sequence_length, channels]"}),
};

}  // namespace halfstep::nn
