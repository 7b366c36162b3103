#include "plan/steps.h"

#include <fmt/format.h>

#include <memory>
#include <random>

#include "backend/cost_model.h"
#include "config/load.h"

namespace halfstep::plan {

namespace {

/// The training step of a config on 8x8 images.
graph::Graph step_of(const std::string& text, std::int64_t batch) {
  const StepConfig config(text);
  return nn::build_step(config.step_spec, config.data, batch, nn::Purpose::train);
}

}  // namespace

StepConfig::StepConfig(const std::string& text) {
  Diagnostics diagnostics;
  spec = config::parse_run_spec(config::load_text(text, "steps.yaml", diagnostics), diagnostics);
  step_spec = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
}

Prepared StepConfig::prepare(std::int64_t batch, const PassOptions& options) const {
  return build_step(step_spec, data, batch, nn::Purpose::train, spec, options);
}

graph::Graph step_graph(std::string_view policy, std::int64_t batch) {
  const std::string text = fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [8, 8, 1]
  layers:
    - {{type: conv2d, filters: 4, kernel_size: 3, padding: same}}
    - {{type: batch_normalization}}
    - {{type: relu}}
    - {{type: max_pooling2d}}
    - {{type: flatten}}
    - {{type: dropout, rate: 0.25}}
    - {{type: dense, units: 16, activation: relu}}
    - {{type: dense, units: 10}}
    - {{type: softmax, dtype: float32}}
precision: {{policy: {}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: adam, learning_rate: 1e-2, global_clipnorm: 1}}
)",
                                       policy);
  return step_of(text, batch);
}

graph::Graph conv_step_graph(std::string_view policy, std::int64_t batch) {
  const std::string text = fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [8, 8, 1]
  layers:
    - {{type: conv2d, filters: 4, kernel_size: 3, padding: same, use_bias: false, activation: relu}}
    - {{type: conv2d, filters: 5, kernel_size: 3, use_bias: false, activation: relu}}
    - {{type: max_pooling2d, pool_size: 3, strides: 2}}
    - {{type: flatten}}
    - {{type: dense, units: 10, dtype: float32}}
    - {{type: softmax, dtype: float32}}
precision: {{policy: {}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: sgd, learning_rate: 0.1, momentum: 0.9}}
)",
                                       policy);
  return step_of(text, batch);
}

graph::Graph residual_step_graph(std::string_view policy, std::int64_t batch) {
  const std::string text = fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  inputs: {{image: [8, 8, 1]}}
  nodes:
    stem: {{type: conv2d, filters: 5, kernel_size: 3, padding: same, use_bias: false, from: image}}
    stem_norm: {{type: batch_normalization, from: stem}}
    stem_relu: {{type: relu, from: stem_norm}}
    conv:
      {{type: conv2d, filters: 5, kernel_size: 3, padding: same, use_bias: false, kernel_regularizer: {{l2: 1e-3}}, from: stem_relu}}
    norm: {{type: batch_normalization, from: conv}}
    sum: {{type: add, from: [stem_relu, norm]}}
    relu: {{type: relu, from: sum}}
    pool: {{type: global_average_pooling2d, from: relu}}
    logits: {{type: dense, units: 10, dtype: float32, from: pool}}
    predictions: {{type: softmax, dtype: float32, from: logits}}
  outputs: [predictions]
precision: {{policy: {}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: sgd, learning_rate: 0.1, momentum: 0.9}}
)",
                                       policy);
  return step_of(text, batch);
}

graph::Graph transformer_step_graph(std::string_view policy, std::int64_t batch) {
  const std::string text = fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  inputs: {{image: [8, 8, 1]}}
  nodes:
    patches: {{type: conv2d, filters: 8, kernel_size: 2, strides: 2, from: image}}
    steps: {{type: reshape, target_shape: [16, 8], from: patches}}
    positions: {{type: position_embedding, sequence_length: 16, from: steps}}
    start: {{type: add, from: [steps, positions]}}
    norm1: {{type: layer_normalization, from: start}}
    attention: {{type: multi_head_attention, num_heads: 2, key_dim: 4, from: norm1}}
    sum1: {{type: add, from: [start, attention]}}
    norm2: {{type: layer_normalization, from: sum1}}
    hidden: {{type: dense, units: 16, activation: gelu, from: norm2}}
    mixed: {{type: dense, units: 8, from: hidden}}
    sum2: {{type: add, from: [sum1, mixed]}}
    norm: {{type: layer_normalization, from: sum2}}
    pool: {{type: global_average_pooling1d, from: norm}}
    logits: {{type: dense, units: 10, dtype: float32, from: pool}}
    predictions: {{type: softmax, dtype: float32, from: logits}}
  outputs: [predictions]
precision: {{policy: {}}}
loss: sparse_categorical_crossentropy
optimizer:
  type: adamw
  learning_rate: {{type: cosine_decay, initial_learning_rate: 0.01, decay_steps: 100, warmup_steps: 2}}
)",
                                       policy);
  return step_of(text, batch);
}

void feed(Plan& plan, std::uint32_t seed) {
  std::mt19937 random(seed);
  const Tensor images(DType::uint8, plan.input("images").shape);
  for (std::uint8_t& pixel : images.span<std::uint8_t>()) {
    pixel = static_cast<std::uint8_t>(random());
  }
  const Tensor labels(DType::int32, plan.input("labels").shape);
  for (std::int32_t& label : labels.span<std::int32_t>()) {
    label = static_cast<std::int32_t>(random() % 10U);
  }
  const std::int64_t ordinal = seed;
  plan.write("images", images.view().data);
  plan.write("labels", labels.view().data);
  plan.write("ordinal", &ordinal);
}

const backend::Backend& cpu() {
  static const backend::Backend backend = backend::cpu_backend(1);
  return backend;
}

const backend::Backend& cpu_by_rule() {
  static const backend::Backend backend = [] {
    backend::Backend plain = cpu();
    plain.capabilities.costs = std::make_shared<const backend::CostModel>();
    return plain;
  }();
  return backend;
}

}  // namespace halfstep::plan
