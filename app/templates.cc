#include "templates.h"

#include <array>

namespace halfstep::app {
namespace {

constexpr std::string_view k_mnist_mlp = R"(# A fully connected network on MNIST.
version: 1
name: mnist_mlp
seed: 1
data: {name: mnist, validation_split: 0.1}
model:
  input: [784]
  layers:
    - {type: dense, units: 128, activation: relu}
    - {type: dropout, rate: 0.2}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
precision:
  policy: mixed_bfloat16        # float32, mixed_float16 or mixed_bfloat16
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 128}
)";

constexpr std::string_view k_mnist_cnn = R"(# A convolutional network on MNIST.
version: 1
name: mnist_cnn
seed: 1
data: {name: mnist, validation_split: 0.1}
model:
  input: [28, 28, 1]
  layers:
    - {type: conv2d, filters: 32, kernel_size: 3, activation: relu}
    - {type: conv2d, filters: 64, kernel_size: 3, activation: relu}
    - {type: max_pooling2d}
    - {type: flatten}
    - {type: dropout, rate: 0.5}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
precision:
  policy: mixed_float16
  loss_scale: {mode: auto, initial: 32768, growth_steps: 2000}   # dynamic with float16
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 128}
)";

constexpr std::string_view k_keras_guide = R"(# The model of TensorFlow's mixed precision guide.
version: 1
name: keras_guide
seed: 1234
data: {name: mnist, validation_split: 0.2}
model:
  input: [784]
  layers:
    - {name: dense_1, type: dense, units: 4096, activation: relu}
    - {name: dense_2, type: dense, units: 4096, activation: relu}
    - {name: dense_logits, type: dense, units: 10}
    - {name: predictions, type: softmax, dtype: float32}
precision:
  policy: mixed_float16
loss: sparse_categorical_crossentropy
optimizer: {type: rmsprop, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 8192}
)";

constexpr std::array k_templates{Template{"mnist-mlp", k_mnist_mlp},
                                 Template{"mnist-cnn", k_mnist_cnn},
                                 Template{"keras-guide", k_keras_guide}};

}  // namespace

std::span<const Template> config_templates() { return k_templates; }

}  // namespace halfstep::app
