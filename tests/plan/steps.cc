#include "plan/steps.h"

#include <fmt/format.h>

#include <random>

#include "config/load.h"

namespace halfstep::plan {

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
  Diagnostics diagnostics;
  const config::RunSpec spec =
      config::parse_run_spec(config::load_text(text, "steps.yaml", diagnostics), diagnostics);
  const nn::Blueprint blueprint = nn::read_blueprint(spec, diagnostics);
  diagnostics.throw_if_any();
  const nn::DataShape data{{8, 8, 1}, DType::uint8, {}, DType::int32};
  return nn::build_step(blueprint, data, batch, nn::Purpose::train);
}

void feed(const Plan& plan, std::uint32_t seed) {
  std::mt19937 random(seed);
  const TensorView images = plan.input("images");
  for (std::int64_t i = 0; i < images.elements(); ++i) {
    images.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
  }
  const TensorView labels = plan.input("labels");
  for (std::int64_t i = 0; i < labels.elements(); ++i) {
    labels.as<std::int32_t>()[i] = static_cast<std::int32_t>(random() % 10U);
  }
  *plan.input("ordinal").as<std::int64_t>() = seed;
}

const backend::Backend& cpu() {
  static const backend::Backend backend = backend::cpu_backend(1);
  return backend;
}

}  // namespace halfstep::plan
