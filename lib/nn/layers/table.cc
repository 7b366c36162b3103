#include "nn/layers/table.h"

#include <fmt/core.h>

#include "core/ranges.h"
#include "nn/missing_arguments.h"

namespace halfstep::nn {

extern const LayerDefs k_activation_layers;
extern const LayerDefs k_attention_layers;
extern const LayerDefs k_augmentation_layers;
extern const LayerDefs k_batch_normalization_layers;
extern const LayerDefs k_conv2d_layers;
extern const LayerDefs k_conv3d_layers;
extern const LayerDefs k_dense_layers;
extern const LayerDefs k_dropout_layers;
extern const LayerDefs k_embedding_layers;
extern const LayerDefs k_layer_normalization_layers;
extern const LayerDefs k_merging_layers;
extern const LayerDefs k_pooling_layers;
extern const LayerDefs k_preprocessing_layers;
extern const LayerDefs k_recurrent_layers;
extern const LayerDefs k_shaping_layers;
extern const LayerDefs k_wrapper_layers;

namespace {

constexpr MissingArgument k_missing_arguments[] = {
    {"_constraint", "weights are not constrained"},
    {"attention_axes", "steps attend to steps, along axis 1"},
    {"axis", "channels are the last axis"},
    {"flash_attention", "the pass fuse_attention fuses attention wherever it can"},
    {"interpolation", "pixels are repeated, as by nearest"},
    {"lora_alpha", "weights have no low-rank updates"},
    {"lora_rank", "weights have no low-rank updates"},
    {"noise_shape", "each element is drawn by itself"},
    {"output_padding", "outputs have their default extents"},
    {"quantization_config", "weights have 16 or 32 bits"},
    {"renorm", "batches are not renormalized"},
    {"renorm_clipping", "batches are not renormalized"},
    {"renorm_momentum", "batches are not renormalized"},
    {"score_mode", "scores are dot products"},
    {"sliding_window", "a step sees all steps of the value, or with a causal mask those before it"},
    {"unroll", "all steps are one op"},
    {"use_cudnn", "the first kernel that accepts the op runs it"},
    {"use_gate", "the output is not gated"},
    {"weights", "weights come from a checkpoint"},
};

}  // namespace

std::string_view missing_argument(std::string_view name) {
  return missing_argument(k_missing_arguments, name);
}

std::vector<std::string_view> skipped_keys(const config::Node& node,
                                           void (*fields)(config::Fields& f),
                                           Diagnostics& diagnostics) {
  auto skipped = refuse_missing(k_missing_arguments, node, fields, diagnostics);
  skipped.insert(skipped.end(), k_common_layer_keys.begin(), k_common_layer_keys.end());
  return skipped;
}

std::string input_count(const LayerTraits& traits) {
  std::string text = fmt::format("{}", traits.min_inputs);
  if (traits.max_inputs == k_any_number) {
    text += " or more";
  } else if (traits.max_inputs > traits.min_inputs) {
    text += fmt::format(" to {}", traits.max_inputs);
  }
  text += text == "1" ? " input" : " inputs";
  if (traits.max_states == 0) return text;
  return text + fmt::format(" and up to {} initial state{}",
                            traits.max_states,
                            traits.max_states == 1 ? "" : "s");
}

std::span<const LayerDef* const> layer_table() {
  static const std::vector<const LayerDef*> k_table = [] {
    std::vector<const LayerDef*> table;
    for (const LayerDefs* file : {&k_activation_layers,
                                  &k_attention_layers,
                                  &k_augmentation_layers,
                                  &k_batch_normalization_layers,
                                  &k_conv2d_layers,
                                  &k_conv3d_layers,
                                  &k_dense_layers,
                                  &k_dropout_layers,
                                  &k_embedding_layers,
                                  &k_layer_normalization_layers,
                                  &k_merging_layers,
                                  &k_pooling_layers,
                                  &k_preprocessing_layers,
                                  &k_recurrent_layers,
                                  &k_shaping_layers,
                                  &k_wrapper_layers}) {
      for (const LayerDef& def : *file) table.push_back(&def);
    }
    std::ranges::sort(table, {}, &LayerDef::type);
    return table;
  }();
  return k_table;
}

const LayerDef* find_layer(std::string_view type) {
  const auto found = std::ranges::find(layer_table(), type, &LayerDef::type);
  return found == layer_table().end() ? nullptr : *found;
}

const LayerDef* find_layer(std::string_view type, const Where& where, Diagnostics& diagnostics) {
  const LayerDef* found = find_layer(type);
  if (found != nullptr) return found;
  const auto known = mapped<std::string>(layer_table(), &LayerDef::type);
  diagnostics.error(where,
                    fmt::format("unknown layer type '{}'", type),
                    choices(type, known, "halfstep help layers"));
  return nullptr;
}

void LayerCommon::fields(config::Fields& f) {
  f.field("name",
          name,
          {.doc = "Name of the layer and prefix of its weights; null: its type, numbered where "
                  "there are several."});
  f.field("type", type, {.doc = "Type of the layer.", .required = true});
  settings(f);
  f.field("from",
          from,
          {.doc = "Names of the nodes or inputs that the layer takes, for `nodes` alone; `name:1` "
                  "is the second output of a node that has several."});
}

void LayerCommon::settings(config::Fields& f) {
  f.field("dtype",
          dtype,
          {.doc = "Policy of this layer: float32, mixed_float16, mixed_bfloat16, float16 or "
                  "bfloat16; null: precision.policy."});
  f.field("trainable", trainable, {.doc = "Whether training changes the layer's weights."});
  regularizer_field(
      f, "activity_regularizer", activity_regularizer, "Penalty on the output, per sample.");
}

}  // namespace halfstep::nn
