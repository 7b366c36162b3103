#include "train/fixture.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "config/load.h"
#include "data/loader.h"
#include "train/checkpoint.h"

namespace halfstep::train {

config::RunSpec TinyRun::spec() const {
  const std::string text = "name: tiny\nseed: 11\ndata: " + data + "\nmodel:\n  " + model + layers +
                           "precision: " + precision + "\nloss: " + loss +
                           "\noptimizer: " + optimizer + "\ntraining: " + training + "\n";
  Diagnostics diagnostics;
  const config::Node node = config::load_text(text, "tiny.yaml", diagnostics);
  config::RunSpec spec = config::parse_run_spec(node, diagnostics);
  diagnostics.throw_if_any();
  return spec;
}

const data::Dataset& digits() {
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

data::Dataset digits_with_nan(std::int64_t sample) {
  const data::Dataset& source = digits();
  const auto floats = [](const data::Split& split) {
    data::Split copy;
    copy.images = Tensor(DType::float32, split.images.shape());
    convert(split.images.view(), copy.images.view());
    for (float& x : copy.images.span<float>()) x /= 255;
    copy.labels = split.labels.clone();
    return copy;
  };
  data::Dataset dataset;
  dataset.name = "digits_with_nan";
  dataset.train = floats(source.train);
  dataset.test = floats(source.test);
  dataset.classes = source.classes;
  dataset.sample_shape = source.sample_shape;
  dataset.train.images.as<float>()[sample * source.sample_shape.elements()] =
      std::numeric_limits<float>::quiet_NaN();
  return dataset;
}

TinyRun masked_rows(std::string_view masks) {
  TinyRun tiny;
  tiny.layers = "\n    - {type: reshape, target_shape: [28, 28]}\n" + std::string(masks) + R"(
    - {type: dense, units: 12, activation: relu}
    - {name: logits, type: dense, units: 10, kernel_regularizer: l2}
    - {type: softmax, dtype: float32}
)";
  tiny.data = "{format: npz, path: x.npz, sample_weight: w}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05, global_clipnorm: 1}";
  // The last batch of an epoch has one sample.
  tiny.training =
      "{epochs: 2, batch_size: 53, class_weight: {2: 3, 5: 0.5}}\n"
      "metrics: [accuracy, mean_io_u, perplexity, weighted_accuracy]";
  return tiny;
}

std::vector<TinyRun> masked_runs() {
  const std::string masking = "    - {type: masking}\n";
  std::vector<TinyRun> runs{
      masked_rows(masking),
      masked_rows("    - {type: dense, units: 3, activation: relu}\n" + masking)};
  for (const std::string_view masks : {std::string_view(), std::string_view(masking)}) {
    runs.push_back(masked_rows(masks));
    runs.back().loss = "{type: sparse_categorical_crossentropy, ignore_class: 3}";
  }
  return runs;
}

data::Dataset digit_rows() {
  data::Dataset dataset;
  dataset.name = "digit_rows";
  dataset.classes = digits().classes;
  dataset.sample_shape = digits().sample_shape;
  const auto rows_of = [](const data::Split& digits) {
    data::Split split;
    split.images = digits.images.clone();
    split.labels = Tensor(DType::int32, {digits.samples(), 28});
    split.weights = Tensor(DType::float32, {digits.samples()});
    for (std::int64_t i = 0; i < digits.samples(); ++i) {
      split.weights.as<float>()[i] = static_cast<float>(i % 5) / 2;
      std::fill_n(split.images.as<std::uint8_t>() + 28 * 28 * i, 28 * (i % 25), std::uint8_t{0});
      for (std::int64_t row = 0; row < 28; ++row) {
        split.labels.as<std::int32_t>()[28 * i + row] =
            static_cast<std::int32_t>((digits.labels.as<std::int32_t>()[i] + row) % 10);
      }
    }
    return split;
  };
  dataset.train = rows_of(digits().train);
  dataset.test = rows_of(digits().test);
  return dataset;
}

TinyRun digit_halves() {
  TinyRun tiny;
  tiny.data = "{format: npz, path: x.npz, validation_split: 0.2}";
  tiny.model = "inputs: {upper: [14, 28, 1], lower: [14, 28, 1]}\n  nodes:";
  tiny.layers = R"(
    whole: {type: concatenate, axis: 1, from: [upper, lower]}
    flat: {type: flatten, from: whole}
    hidden: {type: dense, units: 12, activation: relu, from: flat}
    norm: {type: batch_normalization, from: hidden}
    dropout: {type: dropout, rate: 0.3, from: norm}
    logits: {type: dense, units: 10, from: dropout}
    softmax: {type: softmax, dtype: float32, from: logits}
  outputs: softmax
)";
  return tiny;
}

data::Dataset flat_digits() {
  data::Dataset dataset;
  dataset.name = "flat_digits";
  dataset.classes = digits().classes;
  dataset.sample_shape = {digits().sample_shape.elements()};
  const auto flat = [](const data::Split& digits) {
    data::Split split{digits.images.clone(), digits.labels.clone()};
    split.images.reshape({digits.samples(), digits.images.elements() / digits.samples()});
    return split;
  };
  dataset.train = flat(digits().train);
  dataset.test = flat(digits().test);
  return dataset;
}

TinyRun two_outputs() {
  TinyRun tiny;
  tiny.data = "{format: npz, path: x.npz, sample_weight: w}";
  tiny.model = "inputs: {image: [28, 28, 1]}\n  nodes:";
  tiny.layers = R"(
    flat: {type: flatten, from: image}
    hidden: {type: dense, units: 12, activation: relu, kernel_regularizer: l2, from: flat}
    scores: {type: dense, units: 10, from: hidden}
    digit: {type: softmax, dtype: float32, from: scores}
    mean: {type: dense, units: 2, dtype: float32, from: hidden}
  outputs: [digit, mean]
)";
  tiny.loss =
      "{digit: sparse_categorical_crossentropy, mean: mean_squared_error}\n"
      "loss_weights: {mean: 0.5}\n"
      "metrics: {digit: [accuracy, weighted_accuracy], mean: mean_absolute_error}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05, global_clipnorm: 1}";
  // The last batch of an epoch has one sample.
  tiny.training = "{epochs: 2, batch_size: 53}";
  return tiny;
}

data::Dataset digits_and_means() {
  data::Dataset dataset;
  dataset.name = "digits_and_means";
  dataset.sample_shape = digits().sample_shape;
  dataset.outputs = {{"digit", true, {}, DType::int32, 10}, {"mean", false, {2}}};
  const auto labelled = [](const data::Split& digits) {
    data::Split split;
    split.images = digits.images.clone();
    split.labels = Tensor(DType::float32, {digits.samples(), 3});
    split.weights = Tensor(DType::float32, {digits.samples()});
    for (std::int64_t i = 0; i < digits.samples(); ++i) {
      const std::uint8_t* pixels = digits.images.as<std::uint8_t>() + 784 * i;
      const auto mean = [&](int count) {
        return static_cast<float>(std::accumulate(pixels, pixels + count, 0)) /
               (255.0F * static_cast<float>(count));
      };
      float* label = split.labels.as<float>() + 3 * i;
      label[0] = static_cast<float>(digits.labels.as<std::int32_t>()[i]);
      label[1] = mean(784);
      label[2] = mean(392);
      split.weights.as<float>()[i] = static_cast<float>(i % 5) / 2;
    }
    return split;
  };
  dataset.train = labelled(digits().train);
  dataset.test = labelled(digits().test);
  return dataset;
}

const backend::Backend& cpu() {
  static const backend::Backend backend = backend::cpu_backend(1);
  return backend;
}

Run::Run(const config::RunSpec& spec,
         TrainOptions options,
         const data::Dataset& dataset,
         const backend::Backend& backend,
         const std::set<std::string, std::less<>>& skipped_passes)
    : session_(spec, dataset, backend, nn::Purpose::train, skipped_passes),
      trainer_(session_, std::move(options), record_) {}

TrainResult Run::finish() {
  while (trainer_.advance(1000)) {
  }
  return trainer_.finish();
}

std::string bytes_of(const plan::State& state, std::string_view variable) {
  const Tensor& tensor = state.tensor(variable);
  return {static_cast<const char*>(tensor.view().data), tensor.bytes()};
}

TrainOptions in_directory(const std::string& directory) {
  TrainOptions options;
  options.directory = [directory] { return directory; };
  options.resume = find_checkpoint(directory).value_or("");
  return options;
}

}  // namespace halfstep::train
