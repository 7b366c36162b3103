#include "nn/layers/table.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/describe.h"

namespace halfstep::nn {

extern const LayerDef k_activation;
extern const LayerDef k_add;
extern const LayerDef k_alpha_dropout;
extern const LayerDef k_attention;
extern const LayerDef k_average;
extern const LayerDef k_average_pooling1d;
extern const LayerDef k_average_pooling2d;
extern const LayerDef k_average_pooling3d;
extern const LayerDef k_batch_normalization;
extern const LayerDef k_bidirectional;
extern const LayerDef k_concatenate;
extern const LayerDef k_conv1d;
extern const LayerDef k_conv1d_transpose;
extern const LayerDef k_conv2d;
extern const LayerDef k_conv2d_transpose;
extern const LayerDef k_conv3d;
extern const LayerDef k_cropping2d;
extern const LayerDef k_cutout;
extern const LayerDef k_dense;
extern const LayerDef k_depthwise_conv2d;
extern const LayerDef k_dot;
extern const LayerDef k_dropout;
extern const LayerDef k_elu;
extern const LayerDef k_embedding;
extern const LayerDef k_flatten;
extern const LayerDef k_gaussian_dropout;
extern const LayerDef k_gaussian_noise;
extern const LayerDef k_gelu;
extern const LayerDef k_global_average_pooling1d;
extern const LayerDef k_global_average_pooling2d;
extern const LayerDef k_global_average_pooling3d;
extern const LayerDef k_global_max_pooling1d;
extern const LayerDef k_global_max_pooling2d;
extern const LayerDef k_global_max_pooling3d;
extern const LayerDef k_group_normalization;
extern const LayerDef k_gru;
extern const LayerDef k_hard_sigmoid;
extern const LayerDef k_hard_silu;
extern const LayerDef k_layer_normalization;
extern const LayerDef k_leaky_relu;
extern const LayerDef k_linear;
extern const LayerDef k_log_softmax;
extern const LayerDef k_lstm;
extern const LayerDef k_masking;
extern const LayerDef k_max_pooling1d;
extern const LayerDef k_max_pooling2d;
extern const LayerDef k_max_pooling3d;
extern const LayerDef k_maximum;
extern const LayerDef k_minimum;
extern const LayerDef k_mish;
extern const LayerDef k_multi_head_attention;
extern const LayerDef k_multiply;
extern const LayerDef k_permute;
extern const LayerDef k_position_embedding;
extern const LayerDef k_prelu;
extern const LayerDef k_random_crop;
extern const LayerDef k_random_flip;
extern const LayerDef k_random_rotation;
extern const LayerDef k_random_translation;
extern const LayerDef k_relu;
extern const LayerDef k_relu6;
extern const LayerDef k_repeat_vector;
extern const LayerDef k_rescaling;
extern const LayerDef k_reshape;
extern const LayerDef k_rms_normalization;
extern const LayerDef k_selu;
extern const LayerDef k_separable_conv2d;
extern const LayerDef k_sigmoid;
extern const LayerDef k_silu;
extern const LayerDef k_simple_rnn;
extern const LayerDef k_softmax;
extern const LayerDef k_softplus;
extern const LayerDef k_softsign;
extern const LayerDef k_spatial_dropout1d;
extern const LayerDef k_spatial_dropout2d;
extern const LayerDef k_subtract;
extern const LayerDef k_tanh;
extern const LayerDef k_time_distributed;
extern const LayerDef k_up_sampling2d;
extern const LayerDef k_zero_padding1d;
extern const LayerDef k_zero_padding2d;
extern const LayerDef k_zero_padding3d;

namespace {

constexpr std::array k_layers{
    &k_activation,
    &k_add,
    &k_alpha_dropout,
    &k_attention,
    &k_average,
    &k_average_pooling1d,
    &k_average_pooling2d,
    &k_average_pooling3d,
    &k_batch_normalization,
    &k_bidirectional,
    &k_concatenate,
    &k_conv1d,
    &k_conv1d_transpose,
    &k_conv2d,
    &k_conv2d_transpose,
    &k_conv3d,
    &k_cropping2d,
    &k_cutout,
    &k_dense,
    &k_depthwise_conv2d,
    &k_dot,
    &k_dropout,
    &k_elu,
    &k_embedding,
    &k_flatten,
    &k_gaussian_dropout,
    &k_gaussian_noise,
    &k_gelu,
    &k_global_average_pooling1d,
    &k_global_average_pooling2d,
    &k_global_average_pooling3d,
    &k_global_max_pooling1d,
    &k_global_max_pooling2d,
    &k_global_max_pooling3d,
    &k_group_normalization,
    &k_gru,
    &k_hard_sigmoid,
    &k_hard_silu,
    &k_layer_normalization,
    &k_leaky_relu,
    &k_linear,
    &k_log_softmax,
    &k_lstm,
    &k_masking,
    &k_max_pooling1d,
    &k_max_pooling2d,
    &k_max_pooling3d,
    &k_maximum,
    &k_minimum,
    &k_mish,
    &k_multi_head_attention,
    &k_multiply,
    &k_permute,
    &k_position_embedding,
    &k_prelu,
    &k_random_crop,
    &k_random_flip,
    &k_random_rotation,
    &k_random_translation,
    &k_relu,
    &k_relu6,
    &k_repeat_vector,
    &k_rescaling,
    &k_reshape,
    &k_rms_normalization,
    &k_selu,
    &k_separable_conv2d,
    &k_sigmoid,
    &k_silu,
    &k_simple_rnn,
    &k_softmax,
    &k_softplus,
    &k_softsign,
    &k_spatial_dropout1d,
    &k_spatial_dropout2d,
    &k_subtract,
    &k_tanh,
    &k_time_distributed,
    &k_up_sampling2d,
    &k_zero_padding1d,
    &k_zero_padding2d,
    &k_zero_padding3d,
};

struct MissingArgument {
  std::string_view name;  ///< beginning with "_": the end of the names of several
  std::string_view reason;
};
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
  for (const MissingArgument& argument : k_missing_arguments) {
    const bool end = argument.name.starts_with('_');
    if (end ? name.ends_with(argument.name) : name == argument.name) return argument.reason;
  }
  return {};
}

std::vector<std::string_view> skipped_keys(const config::Node& node,
                                           void (*fields)(config::Fields& f),
                                           Diagnostics& diagnostics) {
  std::vector<std::string_view> skipped(k_common_layer_keys.begin(), k_common_layer_keys.end());
  for (const config::Node::Entry& entry : node.entries) {
    const std::string_view reason = missing_argument(entry.key);
    if (reason.empty()) continue;
    const std::vector<config::FieldDoc> known = config::describe_fields(fields);
    if (std::ranges::any_of(
            known, [&](const config::FieldDoc& field) { return field.name == entry.key; })) {
      continue;
    }
    diagnostics.error(entry.where,
                      fmt::format("the argument '{}' of Keras is not there: {}", entry.key, reason),
                      "leave it out");
    skipped.push_back(entry.key);
  }
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

std::span<const LayerDef* const> layer_table() { return k_layers; }

const LayerDef* find_layer(std::string_view type) {
  for (const LayerDef* def : k_layers) {
    if (def->type == type) return def;
  }
  return nullptr;
}

const LayerDef* find_layer(std::string_view type, const Where& where, Diagnostics& diagnostics) {
  const LayerDef* found = find_layer(type);
  if (found != nullptr) return found;
  std::vector<std::string> known;
  for (const LayerDef* def : k_layers) known.emplace_back(def->type);
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
