#include "plan/steps.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
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

Trained train(const StepConfig& config,
              std::int64_t batch,
              const backend::Backend& backend,
              const PassOptions& options) {
  Lowering lowering;
  lowering.passes = options;
  const graph::Graph step = config.prepare(batch, options).graph;
  Plan plan = compile(step, backend, lowering);
  State state(step, 7, backend.memory);
  Arena arena(backend.memory);
  arena.reserve(plan.arena_bytes());
  plan.bind(state, arena);
  Trained trained;
  const auto keep = [&](std::vector<State::Entry>& entries) {
    state.to_host();
    for (const State::Entry& entry : state.entries()) {
      entries.push_back({entry.variable, entry.tensor.clone(), entry.offset});
    }
  };
  keep(trained.before);
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    feed(plan, seed);
    plan.run();
  }
  keep(trained.after);
  return trained;
}

std::int64_t different_elements(const Trained& a, const Trained& b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.after.size(); ++i) {
    const TensorView x = a.after[i].tensor.view(), y = b.after[i].tensor.view();
    if (x.dtype != DType::float32) {
      count += std::memcmp(x.data, y.data, x.bytes()) == 0 ? 0 : x.elements();
      continue;
    }
    for (std::int64_t k = 0; k < x.elements(); ++k) {
      const float p = x.as<float>()[k], q = y.as<float>()[k];
      const bool same = std::memcmp(&p, &q, sizeof(float)) == 0;
      count += same || (std::isnan(p) && std::isnan(q)) ? 0 : 1;
    }
  }
  return count;
}

double relative_distance(const Trained& a, const Trained& b) {
  double apart = 0, way = 0;
  for (std::size_t i = 0; i < a.after.size(); ++i) {
    if (a.after[i].variable.role != graph::Role::weight) continue;
    const auto values = [i](const std::vector<State::Entry>& entries) {
      Tensor tensor(DType::float32, entries[i].tensor.shape());
      convert(entries[i].tensor.view(), tensor.view());
      return tensor;
    };
    const Tensor from = values(a.before), to = values(a.after), other = values(b.after);
    for (std::int64_t k = 0; k < to.elements(); ++k) {
      const double end = to.as<float>()[k];
      apart += std::pow(end - other.as<float>()[k], 2);
      way += std::pow(end - from.as<float>()[k], 2);
    }
  }
  return apart == 0 ? 0 : std::sqrt(apart / way);
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
