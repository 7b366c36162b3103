#include "tiny.h"

#include "config/load.h"
#include "core/error.h"

namespace halfstep::study {
namespace {

constexpr std::string_view k_config = R"(
name: tiny
seed: 11
data: {name: synthetic_digits, train_samples: 160, test_samples: 60, validation_split: 0.2}
model:
  input: [28, 28, 1]
  layers:
    - {type: flatten}
    - {name: hidden, type: dense, units: 16, activation: relu}
    - {type: dropout, rate: 0.3}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 2, batch_size: 24}
)";

}  // namespace

config::RunSpec tiny_spec() {
  Diagnostics diagnostics;
  const config::Node node = config::load_text(k_config, "tiny.yaml", diagnostics);
  config::RunSpec spec = config::parse_run_spec(node, diagnostics);
  diagnostics.throw_if_any();
  return spec;
}

Variant tiny_variant(const std::string& word) {
  return make_variant(tiny_spec(), word, "--policies");
}

const data::Dataset& tiny_data() {
  static const data::Dataset dataset = [] {
    data::DataOptions options;
    options.name = "synthetic_digits";
    options.seed = 11;
    options.train_samples = 160;
    options.test_samples = 60;
    return data::load_dataset(options);
  }();
  return dataset;
}

const backend::Backend& cpu() {
  static const backend::Backend backend = backend::cpu_backend(1);
  return backend;
}

}  // namespace halfstep::study
